"""KV201 kv-capacity-queueing: the cases of capacity_queueing.yaml."""


def test_capacity_queueing(rule_case):
    rule_case.holds()
