"""The problem, loaded (`problem`), and the inputs that are drawn for it: `variants` of them that keep their
`structure`.
"""
