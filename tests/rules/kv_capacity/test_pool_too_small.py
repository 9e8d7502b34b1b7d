"""KV204 pool-too-small: the cases of pool_too_small.yaml."""


def test_pool_too_small(rule_case):
    rule_case.holds()
