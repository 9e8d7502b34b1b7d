#!/usr/bin/env bash
# forensics: vllm-version=0.10.2
set -euo pipefail
PROM=${PROM:-http://prometheus:9090}

q() { curl -fsG "$PROM/api/v1/query" --data-urlencode "query=$1"; }

curl -fsG "$PROM/api/v1/query" --data-urlencode 'query=max(vllm:kv_cache_usage_perc)'
curl -fsG "$PROM/api/v1/query" --data-urlencode 'query=sum(rate(vllm:request_success_total[5m])) by (finished_reason)'
journalctl -u vllm --since -30min | grep -c 'Waiting: [1-9]'
zgrep -h "GPU KV cache usage: 100.0%" /var/log/vllm/server.log.*.gz || true

if [[ ${1:-} == --restart ]]; then
  exec vllm serve "$MODEL" --scheduling-policy priority \
    --max-num-seqs "${SEQS:-128}" --no-enable-prefix-caching
fi
