"""PC103 prefix-diversity-loss: the cases of diversity_loss.yaml."""


def test_diversity_loss(rule_case):
    rule_case.holds()
