"""PC105 caching-disabled: the cases of caching_disabled.yaml."""


def test_caching_disabled(rule_case):
    rule_case.holds()
