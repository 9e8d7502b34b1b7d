"""PC104 cold-cache: the cases of cold_cache.yaml."""


def test_cold_cache(rule_case):
    rule_case.holds()
