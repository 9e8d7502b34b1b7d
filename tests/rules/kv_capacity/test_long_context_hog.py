"""KV203 long-context-hog: the cases of long_context_hog.yaml."""


def test_long_context_hog(rule_case):
    rule_case.holds()
