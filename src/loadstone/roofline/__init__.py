"""How fast a model can be on a machine: shapes, datasheets, and the time of one engine step between the two.

Knows neither requests nor clocks nor sockets; everything here is a pure function of numbers whose sources are named.
"""
