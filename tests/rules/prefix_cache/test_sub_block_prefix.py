"""PC106 sub-block-prefix: the cases of sub_block_prefix.yaml."""


def test_sub_block_prefix(rule_case):
    rule_case.holds()
