# Packages for Debian and Ubuntu (cpack -G DEB, or make deb): lethe, the program, liblethe1, the C
# library, and liblethe-dev, to build with it or with the C++ library.
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_CONTACT "lethe maintainers <lethe@packages.invalid>" CACHE STRING "Maintainer of the packages: NAME <MAIL>")
set(CPACK_DEBIAN_PACKAGE_HOMEPAGE "" CACHE STRING "Address of the project, in the packages")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_COMPONENTS_ALL lethe lib dev)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)

set(CPACK_DEBIAN_LETHE_PACKAGE_NAME lethe)
set(CPACK_DEBIAN_LETHE_PACKAGE_SECTION net)
set(CPACK_DEBIAN_LETHE_DESCRIPTION "lethe copies each unique record of a Kafka topic to another topic, exactly
once, and drops or tags the copies of events that it has seen within a given
time. Its memory is bounded, and a restart restores it from snapshots or from
the log. It also counts events by key, surveys topics for duplicates, and
reconciles two topics.

The package brings systemd units, which are neither enabled nor started, and
Grafana dashboards with Prometheus rules.")
set(CPACK_DEBIAN_LETHE_PACKAGE_CONTROL_EXTRA ${CMAKE_CURRENT_LIST_DIR}/postinst ${CMAKE_CURRENT_LIST_DIR}/prerm
  ${CMAKE_CURRENT_LIST_DIR}/postrm)

set(CPACK_DEBIAN_LIB_PACKAGE_NAME liblethe${lethe_abi_version})
set(CPACK_DEBIAN_LIB_PACKAGE_SECTION libs)
set(CPACK_DEBIAN_LIB_PACKAGE_CONTROL_EXTRA ${CMAKE_CURRENT_LIST_DIR}/triggers)
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS ON)
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS_POLICY ">=")
set(CPACK_DEBIAN_LIB_DESCRIPTION "The engine of lethe for programs in C and other languages: tells for each event
of a stream whether an event with the same id has passed within a horizon, with
bounded memory and a bounded share of false positives.")

set(CPACK_DEBIAN_DEV_PACKAGE_NAME liblethe-dev)
set(CPACK_DEBIAN_DEV_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_DEV_PACKAGE_DEPENDS 
  "${CPACK_DEBIAN_LIB_PACKAGE_NAME} (= ${PROJECT_VERSION}), libabsl-dev, libxxhash-dev")
set(CPACK_DEBIAN_DEV_PACKAGE_SUGGESTS prometheus-cpp-dev)
set(CPACK_DEBIAN_DEV_DESCRIPTION "The engine of lethe as a library for C++ and C: filters with a bounded share of
false positives that forget events older than a horizon, with snapshots,
counters, and the reconciliation of two sets.

The package brings headers, the static C++ library, and files for CMake and
pkg-config.")

# What Debian wants of a package, and no other installation.
string(TIMESTAMP date "%a, %d %b %Y %H:%M:%S +0000" UTC)
set(debian ${PROJECT_BINARY_DIR}/debian)
configure_file(${CMAKE_CURRENT_LIST_DIR}/changelog.in ${debian}/changelog @ONLY)
execute_process(COMMAND gzip -9nc ${debian}/changelog OUTPUT_FILE ${debian}/changelog.gz COMMAND_ERROR_IS_FATAL ANY)
foreach(component lethe lib dev)
  string(TOUPPER ${component} upper)
  install(FILES ${CMAKE_CURRENT_LIST_DIR}/copyright ${debian}/changelog.gz
    DESTINATION share/doc/${CPACK_DEBIAN_${upper}_PACKAGE_NAME} COMPONENT ${component} EXCLUDE_FROM_ALL)
endforeach()
include(CPack)
