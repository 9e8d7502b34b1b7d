"""PC107 counting-artifact: the cases of counting_artifact.yaml."""


def test_counting_artifact(rule_case):
    rule_case.holds()
