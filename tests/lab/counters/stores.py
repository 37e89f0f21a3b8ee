"""The stores of the experiment: a Redis, and a Cassandra of one or three nodes, on this machine.

Each has two sets of counters: `without`, which its clients increment, and `total`, which lethe brings.
"""
import ctypes
import pathlib
import shutil
import signal
import socket
import subprocess
import time

import redis
from cassandra import ConsistencyLevel
from cassandra.cluster import EXEC_PROFILE_DEFAULT, Cluster, ExecutionProfile, NoHostAvailable
from cassandra.concurrent import execute_concurrent_with_args
from cassandra.policies import ConstantReconnectionPolicy, FallthroughRetryPolicy

PAGES = [f"page-{n}" for n in range(10)]  # each with a counter
START_TIMEOUT = 180
REQUEST_TIMEOUT = 2


def free_port(hosts=("127.0.0.1",)):
    """A port that is free on all of them."""
    while True:
        with socket.socket() as first:
            first.bind((hosts[0], 0))
            port = first.getsockname()[1]
        try:
            for host in hosts:
                with socket.socket() as probe:
                    probe.bind((host, port))
            return port
        except OSError:
            pass


def die_with_parent():
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG


def spawn(arguments, log):
    with open(log, "ab") as out:
        return subprocess.Popen(arguments, stdout=out, stderr=out, stdin=subprocess.DEVNULL,
                                preexec_fn=die_with_parent)


def await_answer(ask, process, log, what):
    deadline = time.monotonic() + START_TIMEOUT
    while True:
        try:
            return ask()
        except (redis.RedisError, NoHostAvailable, OSError) as error:
            if process.poll() is not None or time.monotonic() > deadline:
                tail = pathlib.Path(log).read_text(errors="replace")[-4000:]
                raise RuntimeError(f"{what} does not answer: {error}\n{tail}") from error
        time.sleep(0.1)


class Redis:
    """One server whose writes are in its file before it answers. Thread-safe."""

    name = "redis"
    label = "Redis"

    def __init__(self, folder, fsync="always"):
        self.folder, self.fsync = pathlib.Path(folder), fsync
        self.folder.mkdir(parents=True)
        self.port = free_port()
        self.log = self.folder / "log"
        self.process = None
        self.client = redis.Redis(port=self.port, decode_responses=True, socket_timeout=REQUEST_TIMEOUT)
        self.restart()

    def restart(self):
        self.process = spawn(
            ["redis-server", "--bind", "127.0.0.1", "--port", str(self.port), "--dir", str(self.folder),
             "--save", "", "--appendonly", "yes", "--appendfsync", self.fsync], self.log)
        await_answer(self.client.ping, self.process, self.log, "Redis")

    def kill(self):
        self.process.kill()
        self.process.wait()

    def stop(self):
        self.client.close()
        self.kill()

    def increment(self, page):
        self.client.incrby(f"without:{page}", 1)

    def without(self):
        return {page: int(n or 0) for page, n in zip(PAGES, self.client.mget([f"without:{page}" for page in PAGES]))}

    def lethe_counter(self):
        """What lethe's counter needs to bring its totals here."""
        return f",store=redis://127.0.0.1:{self.port}/0"

    def with_lethe(self, topic):
        return {page: int(n) for page, n in self.client.hgetall(f"lethe:{topic}").items()}


# What Cassandra's own start script gives to Java 17.
EXPORTS = ["java.base/jdk.internal.misc", "java.base/jdk.internal.ref", "java.base/sun.nio.ch",
           "java.management.rmi/com.sun.jmx.remote.internal.rmi", "java.rmi/sun.rmi.registry",
           "java.rmi/sun.rmi.server", "java.sql/java.sql"]
OPENS = ["java.base/" + package for package in (
    "java.io", "java.lang", "java.lang.module", "java.lang.reflect", "java.net", "java.nio", "java.util",
    "java.util.concurrent", "java.util.concurrent.atomic", "jdk.internal.loader", "jdk.internal.math",
    "jdk.internal.module", "jdk.internal.ref", "jdk.internal.reflect", "jdk.internal.util.jar", "sun.nio.ch")]
OPENS.append("jdk.management/com.sun.management.internal")

YAML = """\
cluster_name: lab
num_tokens: 1
initial_token: {token}
partitioner: org.apache.cassandra.dht.Murmur3Partitioner
endpoint_snitch: SimpleSnitch
seed_provider:
  - class_name: org.apache.cassandra.locator.SimpleSeedProvider
    parameters:
      - seeds: "{seeds}"
listen_address: {host}
rpc_address: {host}
storage_port: {storage_port}
native_transport_port: {port}
data_file_directories: [{folder}/data]
commitlog_directory: {folder}/commitlog
saved_caches_directory: {folder}/saved_caches
hints_directory: {folder}/hints
cdc_raw_directory: {folder}/cdc_raw
commitlog_sync: batch
file_cache_size: 32MiB
auto_bootstrap: false
auto_snapshot: false
"""

LOGBACK = """\
<configuration>
  <appender name="out" class="ch.qos.logback.core.ConsoleAppender">
    <encoder><pattern>%d{HH:mm:ss} %-5level %logger{0} - %msg%n</pattern></encoder>
  </appender>
  <root level="WARN"><appender-ref ref="out"/></root>
</configuration>
"""


class Cassandra:
    """A cluster in which each node has all data, and answers when a write is on its disk. Thread-safe."""

    def __init__(self, folder, libs, nodes):
        self.folder, self.libs = pathlib.Path(folder), pathlib.Path(libs)
        self.name = f"cassandra-{nodes}"
        self.label = f"Cassandra, {nodes} node{'s' if nodes > 1 else ''}"
        self.hosts = [f"127.0.0.{i + 1}" for i in range(nodes)]
        self.port, self.storage_port = free_port(self.hosts), free_port(self.hosts)
        while self.storage_port == self.port:
            self.storage_port = free_port(self.hosts)
        self.processes = {}
        for host in self.hosts:
            self.start_node(host)
        for host in self.hosts:
            self.await_node(host)
        # An attempt ends with an error rather than with another attempt that the client does not know of.
        profile = ExecutionProfile(retry_policy=FallthroughRetryPolicy(), request_timeout=REQUEST_TIMEOUT,
                                   consistency_level=ConsistencyLevel.QUORUM)
        self.cluster = Cluster(self.hosts, self.port, execution_profiles={EXEC_PROFILE_DEFAULT: profile},
                               reconnection_policy=ConstantReconnectionPolicy(0.5, None))
        self.session = self.cluster.connect()
        for statement in (
                "CREATE KEYSPACE lab WITH replication = {'class': 'SimpleStrategy', 'replication_factor': %d}" % nodes,
                "CREATE TABLE lab.without (page text PRIMARY KEY, n counter)",
                "CREATE TABLE lab.batches (page text PRIMARY KEY, n counter)",
                "CREATE TABLE lab.totals (page text, shard int, total bigint, PRIMARY KEY (page, shard))"):
            self.session.execute(statement, timeout=60)
        self.add = self.session.prepare("UPDATE lab.without SET n = n + 1 WHERE page = ?")
        self.set = self.session.prepare(
            "UPDATE lab.totals USING TIMESTAMP ? SET total = ? WHERE page = ? AND shard = ?")
        self.get_without = self.session.prepare("SELECT page, n FROM lab.without WHERE page IN ?")
        self.get_totals = self.session.prepare("SELECT page, total FROM lab.totals WHERE page IN ?")
        # Java is slow until it has compiled what is called often.
        warm_up = self.session.prepare("UPDATE lab.batches SET n = n + 1 WHERE page = ?")
        execute_concurrent_with_args(self.session, warm_up, [(f"page-{i % 1000}",) for i in range(6000)], concurrency=8,
                                     raise_on_first_error=False)

    def start_node(self, host):
        folder = self.folder / host
        folder.mkdir(parents=True, exist_ok=True)
        token = -2**63 + (2**64 // len(self.hosts)) * self.hosts.index(host) + 1
        (folder / "cassandra.yaml").write_text(YAML.format(
            token=token, seeds=",".join(self.hosts), host=host, port=self.port, storage_port=self.storage_port,
            folder=folder))
        (folder / "logback.xml").write_text(LOGBACK)
        self.processes[host] = spawn(
            ["java", "-Xms512m", "-Xmx512m", "-Xss512k", "-XX:+UseSerialGC",
             f"-javaagent:{next(self.libs.glob('jamm-*.jar'))}",
             *[f"--add-exports={name}=ALL-UNNAMED" for name in EXPORTS],
             *[f"--add-opens={name}=ALL-UNNAMED" for name in OPENS],
             "-Djdk.attach.allowAttachSelf=true", "-Dio.netty.tryReflectionSetAccessible=true",
             f"-Djava.io.tmpdir={folder}", f"-Dcassandra.storagedir={folder}",
             f"-Dcassandra.config=file://{folder}/cassandra.yaml", f"-Dlogback.configurationFile={folder}/logback.xml",
             # All nodes begin at once and with nothing: there is nothing to wait for.
             "-Dcassandra.ring_delay_ms=1000", "-Dcassandra.skip_wait_for_gossip_to_settle=0",
             "-Dcassandra-foreground=yes", "-cp", f"{self.libs}/*", "org.apache.cassandra.service.CassandraDaemon"],
            folder / "log")

    def await_node(self, host):
        """Waits until the node answers, and until it sees all nodes."""
        def ask():
            with Cluster([host], self.port) as cluster:
                up = [h for h in cluster.connect().execute("SELECT peer FROM system.peers_v2")]
                if len(up) < len(self.hosts) - 1:
                    raise OSError(f"{host} sees {len(up)} peers")
        await_answer(ask, self.processes[host], self.folder / host / "log", f"Cassandra on {host}")

    def restart(self):
        self.start_node(self.hosts[-1])
        self.await_node(self.hosts[-1])

    def kill(self):
        """The last node; with three, two are left, and they are a quorum."""
        self.processes[self.hosts[-1]].kill()
        self.processes[self.hosts[-1]].wait()

    def stop(self):
        self.cluster.shutdown()
        for process in self.processes.values():
            process.kill()
            process.wait()
        shutil.rmtree(self.folder)

    def increment(self, page):
        self.session.execute(self.add, (page,))

    def without(self):
        return {row.page: row.n for row in self.session.execute(self.get_without, (PAGES,))}

    def lethe_counter(self):
        return ""

    def set_totals(self, totals):
        """(timestamp, total, page, shard) each. The last timestamp wins, whatever comes again, and when."""
        execute_concurrent_with_args(self.session, self.set, totals, concurrency=50)

    def with_lethe(self, _):
        pages = {}
        for row in self.session.execute(self.get_totals, (PAGES,)):
            pages[row.page] = pages.get(row.page, 0) + row.total
        return pages
