"""Agents as compiled machines: a NamedTuple of arrays and three functions, `reset`, `act` and `observe`.

`reset(state, stream)` forgets everything and takes a random stream, `act(state, s)` chooses an action and
`observe(state, s, a, r, t)` learns from what followed. `play` of each module is the loop of `kernels.play` with these
three compiled in: a person who steps an agent by hand runs the same functions.
"""
