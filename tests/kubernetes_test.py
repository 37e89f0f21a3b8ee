#!/usr/bin/env python3
"""Installs, upgrades and removes the chart at a real API server, which validates what Helm sends. No pod runs.

    tests/kubernetes_test.py FOLDER     with helm, kube-apiserver and python/bin/kubectl in it, and etcd;
                                        `make test-kubernetes` does it
"""
import json
import os
import re
import shutil
import socket
import ssl
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request

import yaml

SOURCE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
CHART = SOURCE + "/connectors/kubernetes/lethe"
TOKEN = "of-the-test"
# Of the Prometheus Operator, as far as the server needs to know it to take its objects.
CRD = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "spec": {
        "group": "monitoring.coreos.com",
        "scope": "Namespaced",
        "versions": [{"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": {
            "type": "object", "x-kubernetes-preserve-unknown-fields": True}}}],
    },
}
KINDS = {
    "statefulset": "/apis/apps/v1/namespaces/default/statefulsets",
    "service": "/api/v1/namespaces/default/services",
    "config": "/api/v1/namespaces/default/configmaps",
    "account": "/api/v1/namespaces/default/serviceaccounts",
    "budget": "/apis/policy/v1/namespaces/default/poddisruptionbudgets",
    "monitor": "/apis/monitoring.coreos.com/v1/namespaces/default/servicemonitors",
    "pod monitor": "/apis/monitoring.coreos.com/v1/namespaces/default/podmonitors",
    "policy": "/apis/networking.k8s.io/v1/namespaces/default/networkpolicies",
    "verify": "/apis/batch/v1/namespaces/default/cronjobs",
    "rules": "/apis/monitoring.coreos.com/v1/namespaces/default/prometheusrules",
}


def free_port():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


class Cluster:
    """An API server on an etcd of its own, for as long as a `with`."""

    def __init__(self, tools):
        self.tools = tools
        self.folder = tempfile.mkdtemp(prefix="lethe-kubernetes-")
        self.processes = []
        self.port = free_port()

    def start(self, name, *arguments):
        with open(f"{self.folder}/{name}.log", "w") as log:
            self.processes.append(subprocess.Popen(arguments, stdout=log, stderr=log))

    def __enter__(self):
        key = self.folder + "/service-account.key"
        subprocess.run(("openssl", "genrsa", "-out", key, "2048"), check=True, stderr=subprocess.DEVNULL)
        with open(self.folder + "/tokens.csv", "w") as file:
            file.write(f'{TOKEN},test,1,"system:masters"\n')
        client, peer = free_port(), free_port()
        etcd = f"http://127.0.0.1:{client}"
        self.start("etcd", "etcd", "--data-dir", self.folder + "/etcd", "--listen-client-urls", etcd,
                   "--advertise-client-urls", etcd, "--listen-peer-urls", f"http://127.0.0.1:{peer}",
                   "--initial-advertise-peer-urls", f"http://127.0.0.1:{peer}",
                   "--initial-cluster", f"default=http://127.0.0.1:{peer}")
        self.start("apiserver", self.tools + "/kube-apiserver", "--etcd-servers", etcd, "--secure-port", str(self.port),
                   "--bind-address", "127.0.0.1", "--cert-dir", self.folder, "--token-auth-file", self.folder + "/tokens.csv",
                   "--authorization-mode", "RBAC", "--service-cluster-ip-range", "10.0.0.0/24",
                   "--service-account-issuer", "https://kubernetes.default.svc", "--service-account-key-file", key,
                   "--service-account-signing-key-file", key)
        config = {
            "apiVersion": "v1", "kind": "Config", "current-context": "test",
            "clusters": [{"name": "test", "cluster": {"server": f"https://127.0.0.1:{self.port}",
                                                      "insecure-skip-tls-verify": True}}],
            "users": [{"name": "test", "user": {"token": TOKEN}}],
            "contexts": [{"name": "test", "context": {"cluster": "test", "user": "test"}}],
        }
        with open(self.folder + "/kubeconfig", "w") as file:
            json.dump(config, file)
        end = time.monotonic() + 120
        while self.ask("GET", "/api/v1/namespaces/default")[0] != 200:
            for process in self.processes:
                assert process.poll() is None, self.logs()
            assert time.monotonic() < end, self.logs()
            time.sleep(0.2)
        return self

    def __exit__(self, *_):
        for process in reversed(self.processes):
            process.kill()
            process.wait()
        shutil.rmtree(self.folder)

    def logs(self):
        return "".join(open(f"{self.folder}/{name}.log").read()[-3000:] for name in ("etcd", "apiserver"))

    def ask(self, method, path, body=None):
        """The status (0: no answer) and the object."""
        context = ssl.create_default_context()
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        request = urllib.request.Request(f"https://127.0.0.1:{self.port}{path}", method=method,
                                         data=None if body is None else json.dumps(body).encode())
        request.add_header("Authorization", "Bearer " + TOKEN)
        request.add_header("Content-Type", "application/json")
        try:
            with urllib.request.urlopen(request, context=context, timeout=10) as response:
                return response.status, json.load(response)
        except urllib.error.HTTPError as error:
            return error.code, json.load(error)
        except OSError:
            return 0, None

    def of_release(self):
        """The names of the release's objects, by kind."""
        selector = "?labelSelector=app.kubernetes.io%2Finstance%3Dorders"
        found = {kind: self.ask("GET", path + selector)[1]["items"] for kind, path in KINDS.items()}
        return {kind: sorted(item["metadata"]["name"] for item in items) for kind, items in found.items() if items}

    def pod(self):
        """The template of the pods."""
        status, found = self.ask("GET", KINDS["statefulset"] + "/orders")
        assert status == 200, found
        return found["spec"]["template"]

    def helm(self, *arguments):
        self.run("helm", *arguments)

    def run(self, *command):
        """With helm and kubectl, in a folder that has the sources' connectors."""
        path = f"{self.tools}:{self.tools}/python/bin:{os.environ['PATH']}"
        environment = dict(os.environ, KUBECONFIG=self.folder + "/kubeconfig", HOME=self.folder, PATH=path)
        done = subprocess.run(command, env=environment, cwd=self.folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              text=True)
        assert done.returncode == 0, done.stdout

    def define(self, plural, kind):
        names = {"plural": plural, "singular": kind.lower(), "kind": kind, "listKind": kind + "List"}
        path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
        crd = dict(CRD, metadata={"name": plural + ".monitoring.coreos.com"}, spec=dict(CRD["spec"], names=names))
        status, answer = self.ask("POST", path, crd)
        assert status == 201, answer
        while self.ask("GET", f"/apis/monitoring.coreos.com/v1/{plural}")[0] != 200:
            time.sleep(0.1)


def look_at_memory(cluster, limit):
    container = cluster.pod()["spec"]["containers"][0]
    assert container["resources"]["limits"]["memory"] == limit, container


def follow_the_page(cluster):
    """Runs what the page of operations tells to run."""
    with open(SOURCE + "/connectors/OPERATIONS.md") as file:
        page = file.read()
    section = re.search(r"^## Kubernetes in ten minutes\n(.*?)^## ", page, re.MULTILINE | re.DOTALL).group(1)
    install, upgrade, uninstall = re.findall(r"^```sh\n(.*?)^```", section, re.MULTILINE | re.DOTALL)
    os.symlink(SOURCE + "/connectors", cluster.folder + "/connectors")
    cluster.run("bash", "-ec", install)
    look_at_memory(cluster, "1536Mi")
    mounts = {mount["mountPath"] for mount in cluster.pod()["spec"]["containers"][0]["volumeMounts"]}
    assert "/etc/lethe/secrets/kafka" in mounts, mounts
    cluster.run("bash", "-ec", upgrade)
    look_at_memory(cluster, "896Mi")
    cluster.run("bash", "-ec", uninstall)
    assert cluster.of_release() == {}, cluster.of_release()
    print(f"what OPERATIONS.md tells to run was run:\n{install}{upgrade}{uninstall}", end="")


def main(tools):
    with Cluster(os.path.abspath(tools)) as cluster:
        cluster.define("servicemonitors", "ServiceMonitor")
        cluster.define("podmonitors", "PodMonitor")
        cluster.define("prometheusrules", "PrometheusRule")
        follow_the_page(cluster)
        every = ["--set", "serviceMonitor.enabled=true,prometheusRule.enabled=true,dashboards.enabled=true"]
        cluster.helm("install", "orders", CHART, *every)
        dashboards = ["orders-adaptation", "orders-overview", "orders-pipeline"]
        assert cluster.of_release() == {
            "statefulset": ["orders"], "service": ["orders"], "config": sorted(["orders", *dashboards]),
            "account": ["orders"], "budget": ["orders"], "monitor": ["orders"], "rules": ["orders"]}, cluster.of_release()
        before = cluster.pod()
        look_at_memory(cluster, "1536Mi")

        # A changed configuration restarts the pods, and its memory moves their limit.
        cluster.helm("upgrade", "orders", CHART, *every, "--set", "config.memory=512MiB")
        after = cluster.pod()
        look_at_memory(cluster, "896Mi")
        assert after["metadata"]["annotations"] != before["metadata"]["annotations"], after

        # What a company's cluster adds, to the pods of the stage and to those of verify.
        added = {
            "configMaps": [{"name": "company-ca"}], "priorityClassName": "system-cluster-critical",
            "imagePullSecrets": [{"name": "registry"}], "podLabels": {"team": "orders"},
            "env": [{"name": "PLACE", "value": "here"}], "envFrom": [{"secretRef": {"name": "more", "optional": True}}],
            "initContainers": [{"name": "first", "image": "busybox:1"}],
            "extraVolumes": [{"name": "scratch", "emptyDir": {}}],
            "extraVolumeMounts": [{"name": "scratch", "mountPath": "/scratch"}],
            "serviceAccount": {"annotations": {"eks.amazonaws.com/role-arn": "arn:aws:iam::1:role/lethe"}},
            "podMonitor": {"enabled": True}, "networkPolicy": {"enabled": True}, "verify": {"enabled": True}}
        settings = [f"--set-json={key}={json.dumps(value)}" for key, value in added.items()]
        cluster.helm("upgrade", "orders", CHART, *settings)
        made = cluster.of_release()
        assert [made[kind] for kind in ("pod monitor", "policy", "verify")] == [["orders"], ["orders"], ["orders-verify"]]
        spec = cluster.pod()["spec"]
        assert spec["priorityClassName"] == "system-cluster-critical", spec
        assert [each["name"] for each in spec["volumes"]] == ["config", "configmap-company-ca", "scratch"], spec
        assert [each["name"] for each in spec["initContainers"]] == ["first"], spec

        cluster.helm("uninstall", "orders")
        assert cluster.of_release() == {}, cluster.of_release()

        with open(SOURCE + "/connectors/kubernetes/sidecar.yaml") as file:
            for document in yaml.safe_load_all(file):
                path = KINDS["config" if document["kind"] == "ConfigMap" else "statefulset"]
                status, answer = cluster.ask("POST", path, document)
                assert status == 201, answer
    print("the chart can be installed, upgraded and removed; the sidecar's example is taken")


main(*sys.argv[1:])
