"""How long moving data must take at least, when node u's link carries r[u] bytes/s each way in total (the hose model).

Node v holds the part s[v] of all data, and node u does the part w[u] of the work. Of W bytes that are written and R
that are read (by somebody, from wherever they are), these cross the link of u, as what a node has itself stays there:

    out   W w(1-s) + R s(1-w)         in   W s(1-w) + R w(1-s)

Both must be at most r T. For a given T that is an interval of possible w[u] for each node, and T is possible if a sum
of 1 is among them: tasks go to whoever is free, so w may be the best there is."""


def bounds(s, rate, written, read, t):
    """The least and the most part of the work that a node can do in t."""
    low, high = 0.0, 1.0
    for a, b in ((written, read), (read, written)):
        # a w(1-s) + b s(1-w) <= rate t
        slope, room = a * (1 - s) - b * s, rate * t - b * s
        if slope > 0:
            high = min(high, room / slope)
        elif slope < 0:
            low = max(low, room / slope)
        elif room < 0:
            high = -1.0
    return low, high


def possible(shares, rates, written, read, t):
    each = [bounds(s, r, written, read, t) for s, r in zip(shares, rates)]
    return all(low <= high for low, high in each) and sum(e[0] for e in each) <= 1 <= sum(e[1] for e in each)


def least_time(shares, rates, written, read=0):
    """Seconds, for these shares and the best division of work."""
    low, high = 0.0, (written + read) / min(rates) + 1
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (low, middle) if possible(shares, rates, written, read, middle) else (middle, high)
    return high


def best_shares(rates):
    """The shares with which all links are busy both ways to the end when everybody works as much as he holds: s(1-s)
    in proportion to the rates. Close to proportional shares: of a large share more stays at home. Where one node has
    about half of all bandwidth there are none, and it is the proportional ones. (With shares and work both free the
    least time would be none at all: everything held and done by one node.)"""
    def shares(t):
        return [(1 - max(0.0, 1 - 4 * t * r) ** 0.5) / 2 for r in rates]

    low, high = 0.0, 0.25 / max(rates)
    if sum(shares(high)) < 1:
        return [r / sum(rates) for r in rates]
    for _ in range(80):
        middle = (low + high) / 2
        low, high = (middle, high) if sum(shares(middle)) < 1 else (low, middle)
    return [s / sum(shares(high)) for s in shares(high)]
