#!/usr/bin/env python3
"""Runs what the image has as a container would: with a read-only root, as its user, with no /tmp and no /proc.

    with_kafka --oauth -- tests/image_test.py IMAGE {}      as root; `make test-image` does it

Not a container runtime's work, which cannot run everywhere: the image is unpacked and its program started in it.
An image for arm64 runs in qemu, of which the kernel is told for that time.
"""
import base64
import contextlib
import ctypes
import hashlib
import json
import os
import platform
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request

from confluent_kafka import Consumer, KafkaError, Producer
from confluent_kafka.admin import AdminClient, NewTopic

UID = 65532
MS_RDONLY, MS_NOSUID, MS_REMOUNT, MS_BIND, MS_REC, MS_PRIVATE = 1, 2, 32, 4096, 16384, 1 << 18
CLONE_NEWNS = 0x00020000
libc = ctypes.CDLL(None, use_errno=True)


def call(result):
    if result != 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


def mount(source, target, flags, kind=None):
    call(libc.mount(source.encode(), target.encode(), kind, flags, None))


def output(*command):
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout.strip()


def unpack(image, folder):
    """The image's files into the folder; returns its configuration, and its processor."""
    if subprocess.run(("docker", "info"), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode == 0:
        container = output("docker", "create", image)
        with subprocess.Popen(("docker", "export", container), stdout=subprocess.PIPE) as export:
            subprocess.run(("tar", "-x", "-C", folder), check=True, stdin=export.stdout)
        output("docker", "rm", container)
        inspected = json.loads(output("docker", "inspect", image))[0]
        return inspected["Config"], inspected["Architecture"]
    container = output("buildah", "from", "--pull-never", image)
    mounted = output("buildah", "mount", container)
    output("cp", "-a", mounted + "/.", folder)
    output("buildah", "rm", container)
    inspected = json.loads(output("buildah", "inspect", "--type", "image", image))["OCIv1"]
    return inspected["config"], inspected["architecture"]


@contextlib.contextmanager
def emulated(architecture):
    """The kernel starts programs of this processor."""
    machine = {"amd64": "x86_64", "arm64": "aarch64"}[architecture]
    if machine == platform.machine():
        yield
        return
    assert machine == "aarch64", f"no emulator for {architecture}"
    registry = "/proc/sys/fs/binfmt_misc"
    if not os.path.exists(registry + "/register"):
        mount("binfmt_misc", registry, 0, b"binfmt_misc")
    # ELF of 64 bits for aarch64, by any system. F: the emulator is opened here, not in the image's root.
    magic = r"\x7fELF\x02\x01\x01" + r"\x00" * 9 + r"\x02\x00\xb7\x00"
    mask = r"\xff" * 7 + r"\x00" + r"\xff" * 8 + r"\xfe\xff\xff\xff"
    name = f"lethe-image-test-{os.getpid()}"
    with open(registry + "/register", "w") as file:
        file.write(f":{name}:M::{magic}:{mask}:/usr/bin/qemu-aarch64-static:F")
    try:
        yield
    finally:
        with open(f"{registry}/{name}", "w") as file:
            file.write("-1")


def start(root, config, arguments, **options):
    """The image's entry point with these arguments, in its root."""
    environment = dict(variable.split("=", 1) for variable in config["Env"])

    def enter():
        os.chroot(root)
        os.chdir("/")
        os.setgroups([])
        os.setgid(UID)
        os.setuid(UID)

    # What is executed is looked up after `enter`, in the new root.
    return subprocess.Popen([*config["Entrypoint"], *arguments], env=environment, preexec_fn=enter, text=True, **options)


def answer(port, path):
    """The status and the body; 0: none."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=5) as response:
            return response.status, response.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()
    except OSError:
        return 0, ""


def wait_until(condition, process, seconds=120):
    end = time.monotonic() + seconds
    while not condition():
        assert process.poll() is None, f"lethe ended with {process.returncode}"
        assert time.monotonic() < end, "not in time"
        time.sleep(0.1)


def look_at_files(root, config):
    assert config["User"] == f"{UID}:{UID}", config["User"]
    assert config["Labels"]["org.opencontainers.image.version"], config["Labels"]
    size = 0
    for folder, _, names in os.walk(root):
        for name in names:
            path = os.path.join(folder, name)
            status = os.lstat(path)
            assert status.st_uid == 0 and not status.st_mode & 0o6000, f"{path}: {status}"
            assert os.path.islink(path) or not status.st_mode & 0o022, f"{path} can be written"
            size += status.st_size
    programs = os.listdir(root + "/usr/bin") + [n for n in ("bin", "sbin", "usr/sbin") if os.path.exists(f"{root}/{n}")]
    assert programs == ["lethe"], programs
    with open(root + "/usr/share/doc/lethe/lethe.cdx.json") as bill:
        bill = json.load(bill)
    names = [component["name"] for component in bill["components"]]
    for needed in ("librdkafka1", "libcurl4t64", "libprotobuf32t64"):
        assert needed in names, names
    with open(root + "/usr/bin/lethe", "rb") as program:
        digest = hashlib.sha256(program.read()).hexdigest()
    assert bill["metadata"]["component"]["hashes"][0]["content"] == digest, "the bill is of another program"
    print(f"files: {size / 2**20:.1f} MiB; the bill of materials names {len(names)} packages")


def look_at_filter(root, config):
    lethe = start(root, config, ["filter", "--id", "json:/id"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    lines = [json.dumps({"id": i}) + "\n" for i in range(1000)]
    unique, _ = lethe.communicate("".join(lines + lines[::-1]), timeout=60)
    assert lethe.returncode == 0 and unique == "".join(lines), lethe.returncode


def oidc_properties():
    given = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "OAUTHBEARER", "sasl.oauthbearer.method": "oidc",
             "sasl.oauthbearer.client.id": "lethe", "sasl.oauthbearer.client.secret": "of the test",
             "sasl.oauthbearer.scope": "kafka", "sasl.oauthbearer.token.endpoint.url": os.environ["KAFKA_OAUTH_TOKENS"]}
    return [f"--kafka={name}={value}" for name, value in given.items()]


def look_at_signatures(brokers):
    """The broker refuses a token that nobody has signed."""
    now = int(time.time())
    parts = {"alg": "none"}, {"sub": "lethe", "iss": os.environ["KAFKA_OAUTH_TOKENS"].removesuffix("/token"), "aud": "kafka",
                              "scope": "kafka", "iat": now, "exp": now + 60}
    token = ".".join([*(base64.urlsafe_b64encode(json.dumps(part).encode()).decode().rstrip("=") for part in parts), ""])
    errors = []
    producer = Producer({"bootstrap.servers": brokers, "security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "OAUTHBEARER",
                         "oauth_cb": lambda _: (token, now + 60), "error_cb": errors.append})
    end = time.monotonic() + 30
    while not any(error.code() == KafkaError._AUTHENTICATION for error in errors):
        assert time.monotonic() < end, f"an unsigned token is not refused: {errors}"
        producer.poll(0.1)
    print("oidc: an unsigned token is refused")


def look_at_run(root, config, brokers, name, lethes_brokers, properties=(), seconds=0):
    """Deduplicates for so many seconds, by this address of the brokers and these properties."""
    source, output_topic = name + "-in", name + "-out"
    admin = AdminClient({"bootstrap.servers": brokers})
    topics = [NewTopic(topic, num_partitions=2, replication_factor=1) for topic in (source, output_topic)]
    for created in admin.create_topics(topics).values():
        created.result()
    producer = Producer({"bootstrap.servers": brokers})
    sent = []

    def send():
        events = [f"event-{len(sent) + i}" for i in range(1000)]
        for event in events + events[::10]:
            producer.produce(source, key=event, value=json.dumps({"id": event}))
        assert producer.flush(30) == 0
        sent.extend(events)

    send()
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    arguments = ["--config", "/etc/lethe/lethe.yaml", "--brokers", lethes_brokers, "--input", source,
                 "--output", output_topic, "--http", f"0.0.0.0:{port}", *properties]
    check = start(root, config, ["check", "--quiet", *arguments])
    assert check.wait(120) in (0, 1), "check finds an error"
    lethe = start(root, config, ["run", *arguments])
    try:
        wait_until(lambda: answer(port, "/readyz")[0] == 200, lethe)
        assert answer(port, "/healthz")[0] == 200
        consumer = Consumer({"bootstrap.servers": brokers, "group.id": name + "-test", "auto.offset.reset": "earliest",
                             "isolation.level": "read_committed"})
        consumer.subscribe([output_topic])
        received = []

        def all_came():
            for message in consumer.consume(2000, timeout=0.5):
                assert message.error() is None, message.error()
                received.append(message.key().decode())
            return len(received) >= len(sent)

        wait_until(all_came, lethe)
        end = time.monotonic() + seconds
        while time.monotonic() < end:  # a stream, while tokens expire
            send()
            wait_until(all_came, lethe)
        began = time.monotonic()
        lethe.send_signal(signal.SIGTERM)
        assert lethe.wait(30) == 0, lethe.returncode
        took = time.monotonic() - began
        for message in consumer.consume(2000, timeout=2):
            received.append(message.key().decode())
        consumer.close()
    finally:
        lethe.kill()
    assert sorted(received) == sorted(sent), f"{len(received)} of {len(sent)} events, each once"
    print(f"{name}: {len(received)} of {len(sent)} events once; SIGTERM ended it in {took * 1000:.0f} ms")


def run_all(root, config, brokers):
    assert start(root, config, ["version"]).wait(60) == 0
    look_at_filter(root, config)
    look_at_run(root, config, brokers, "plain", brokers)
    look_at_signatures(os.environ["KAFKA_OAUTH_BROKERS"])
    # Tokens last for ten seconds, and the broker wants one again every four.
    look_at_run(root, config, brokers, "oidc", os.environ["KAFKA_OAUTH_BROKERS"], oidc_properties(), seconds=25)
    # It starts lethe once more, and keeps a log: runtimes mount these.
    mount("proc", root + "/proc", 0, b"proc")
    mount("tmpfs", root + "/dev/shm", 0, b"tmpfs")
    assert start(root, config, ["demo", "--events", "20000"]).wait(300) == 0


def main(image, brokers):
    folder = tempfile.mkdtemp(prefix="lethe-image-")
    try:
        # mkdtemp's folder is root's alone.
        os.chmod(folder, 0o755)
        root = folder + "/root"
        os.mkdir(root)
        config, architecture = unpack(image, root)
        look_at_files(root, config)
        # A runtime makes the places for what it mounts.
        for place in ("etc/lethe", "proc", "dev/shm"):
            os.makedirs(f"{root}/{place}")
        with open(root + "/etc/lethe/lethe.yaml", "w") as file:
            file.write("id: json:/id\ninstance: lethe-0\nmemory: 64MiB\n")
        call(libc.unshare(CLONE_NEWNS))
        mount("none", "/", MS_REC | MS_PRIVATE)
        mount(root, root, MS_BIND)
        mount("none", root, MS_BIND | MS_REMOUNT | MS_RDONLY | MS_NOSUID)
        with emulated(architecture):
            run_all(root, config, brokers)
    finally:
        libc.umount2(root.encode(), 2)  # MNT_DETACH; it may not be mounted yet
        shutil.rmtree(folder)
    print(f"the image for {architecture} works")


main(*sys.argv[1:])
