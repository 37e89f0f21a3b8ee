#!/usr/bin/env bash
# The chart and the sidecar's example by Helm's rules and the schemas of Kubernetes: chart_test.sh FOLDER, which has
# helm, and kubernetes-validate in python/bin. `make test-chart` does it.
set -euo pipefail
cd "$(dirname "$0")/.."
helm=$1/helm validate=$1/python/bin/kubernetes-validate
chart=connectors/kubernetes/lethe sidecar=connectors/kubernetes/sidecar.yaml
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# Helm names each linked file, each time.
quietly() { "$@" 2> "$work/errors" || { cat "$work/errors" >&2; return 1; }; }

quietly "$helm" lint --strict --quiet "$chart"
if "$helm" lint --strict --set http.port=metrics "$chart" > /dev/null 2>&1; then
  echo "the chart's schema takes a port that is no number" >&2
  exit 1
fi

# By the oldest and the newest Kubernetes: the chart's, and that of containers beside others.
oldest=1.27 oldest_sidecar=1.29 newest=1.37
few=podDisruptionBudget.enabled=false
many=dashboards.enabled=true,secrets[0].name=kafka,config.lanes=4,config.scope=topic,podLabels.team=orders
many+=,verify.enabled=true,verify.textfileFolder=/var/lib/node_exporter,networkPolicy.enabled=true
many+=,configMaps[0].name=company-ca,priorityClassName=high,imagePullSecrets[0].name=registry
many+=,env[0].name=PLACE,env[0].value=here,envFrom[0].secretRef.name=more,nodeSelector.disk=fast
many+=,extraVolumes[0].name=scratch,extraVolumes[0].emptyDir.medium=Memory
many+=,extraVolumeMounts[0].name=scratch,extraVolumeMounts[0].mountPath=/scratch
many+=,initContainers[0].name=first,initContainers[0].image=busybox:1
for values in "$few" "$many"; do
  for version in $oldest $newest; do
    quietly "$helm" template orders "$chart" --kube-version "$version" --set "$values" > "$work/chart.yaml"
    "$validate" --strict --quiet --kubernetes-version "$version" "$work/chart.yaml"
  done
done
grep -q 'kind: CronJob' "$work/chart.yaml"
grep -q -- '--textfile=/textfile/orders.prom' "$work/chart.yaml"
quietly "$helm" template orders "$chart" --kube-version "$newest" > "$work/default.yaml"
if grep -qE 'kind: (CronJob|NetworkPolicy)' "$work/default.yaml"; then
  echo "the job, or the network policy, is on by default" >&2
  exit 1
fi
# Who may come in: those of the values, to the HTTP port alone; without any, nobody.
policy() {
  quietly "$helm" template orders "$chart" --kube-version "$newest" --show-only templates/networkpolicy.yaml \
    --set networkPolicy.enabled=true "$@" | sed '1,/^spec:/d;/^ *#/d' | tr -d ' \n'
}
selected=podSelector:matchLabels:app.kubernetes.io/name:letheapp.kubernetes.io/instance:orderspolicyTypes:[Ingress]
ports=ports:-port:httpprotocol:TCP
for expected in \
  "$selected ingress:-from:-namespaceSelector:{}podSelector:matchLabels:app.kubernetes.io/name:prometheus$ports" \
  "$selected ingress:-from:-ipBlock:cidr:10.1.0.0/16$ports networkPolicy.from=[{\"ipBlock\":{\"cidr\":\"10.1.0.0/16\"}}]" \
  "$selected ingress:[] networkPolicy.from=[]"; do
  read -r who in values <<< "$expected"
  got=$(policy ${values:+--set-json "$values"})
  if [ "$got" != "$who$in" ]; then
    echo "the network policy with '$values' is $got, expected $who$in" >&2
    exit 1
  fi
done
# What both kinds of pods take from the values.
for expected in configmaps/company-ca 'priorityClassName: high' 'name: registry' 'name: PLACE' 'name: more' \
  'mountPath: /scratch' 'image: busybox:1' 'disk: fast'; do
  if [ "$(grep -c "$expected" "$work/chart.yaml")" -ne 2 ]; then
    echo "'$expected' is not once in the stage's pods and once in those of verify" >&2
    exit 1
  fi
done
# KEDA takes strings alone, and scales what the chart makes.
"$1/python/bin/python3" - "$work/default.yaml" connectors/kubernetes/keda.yaml << 'END'
import sys, yaml
made = {(each["kind"], each["metadata"]["name"]) for each in yaml.safe_load_all(open(sys.argv[1])) if each}
scaled = yaml.safe_load(open(sys.argv[2]))["spec"]
assert (scaled["scaleTargetRef"]["kind"], scaled["scaleTargetRef"]["name"]) in made, made
assert all(isinstance(each, str) for trigger in scaled["triggers"] for each in trigger["metadata"].values())
END
for version in $oldest_sidecar $newest; do
  "$validate" --strict --quiet --kubernetes-version "$version" "$sidecar"
done
sed 's/^\( *\)serviceName:/\1serviceNam:/' "$work/chart.yaml" > "$work/wrong.yaml"
if "$validate" --strict --quiet "$work/wrong.yaml" > /dev/null; then
  echo "a misspelt field is not found" >&2
  exit 1
fi
echo "the chart is valid from Kubernetes $oldest to $newest, the sidecar's example from $oldest_sidecar"
