"""PC109 stuck-cache: the cases of stuck_cache.yaml."""


def test_stuck_cache(rule_case):
    rule_case.holds()
