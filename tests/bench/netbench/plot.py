"""Lines over time as SVG."""

COLOURS = ["#0b62a4", "#d95f02", "#1b9e77", "#7570b3", "#e7298a", "#66a61e", "#a6761d", "#444444"]
WIDTH, HEIGHT, LEFT, TOP = 560, 230, 56, 30


def ticks(most):
    step = 10 ** len(str(int(most))) / 10
    while most / step > 6:
        step *= 2
    while most / step < 3:
        step /= 2
    return [i * step for i in range(int(most / step) + 1)]


def panel(title, lines, most_x, y0, unit):
    """`lines`: (name, [(x, y)])."""
    most_y = max([y for _, line in lines for _, y in line] or [1]) * 1.05 or 1

    def at(x, y):
        return LEFT + x / most_x * WIDTH, y0 + TOP + HEIGHT - min(y, most_y) / most_y * HEIGHT

    out = ['<text x="%d" y="%d" class="title">%s</text>' % (LEFT, y0 + TOP - 10, title)]
    for tick in ticks(most_y):
        x, y = at(0, tick)
        out.append('<path class="grid" d="M%.1f %.1fh%d"/><text class="y" x="%.1f" y="%.1f">%g</text>' %
                   (x, y, WIDTH, x - 6, y + 4, tick))
    for tick in ticks(most_x):
        x, y = at(tick, 0)
        out.append('<text class="x" x="%.1f" y="%.1f">%g</text>' % (x, y + 16, tick))
    out.append('<text class="x" x="%d" y="%d">s; %s</text>' % (LEFT + WIDTH - 40, y0 + TOP + HEIGHT + 30, unit))
    for i, (name, points) in enumerate(lines):
        colour = COLOURS[i % len(COLOURS)]
        path = "L".join("%.1f %.1f" % at(x, y) for x, y in points)
        out.append('<path fill="none" stroke="%s" d="M%s"/>' % (colour, path))
        out.append('<text x="%d" y="%d" fill="%s">%s</text>' %
                   (LEFT + WIDTH + 12, y0 + TOP + 12 + 16 * i, colour, name))
    return "\n".join(out)


def save(path, panels, unit):
    """`panels`: (title, lines), below each other, with the same axis of time."""
    most_x = max([x for _, lines in panels for _, line in lines for x, _ in line] or [1]) or 1
    tall = HEIGHT + TOP + 40
    body = "\n".join(panel(title, lines, most_x, i * tall, unit) for i, (title, lines) in enumerate(panels))
    path.write_text('<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" font-family="sans-serif" '
                    'font-size="12">'
                    '<style>.title{font-weight:bold}.grid{stroke:#ddd}.y{text-anchor:end}.x{text-anchor:middle}'
                    '</style>\n'
                    '<rect width="100%%" height="100%%" fill="#fff"/>\n%s\n</svg>\n' %
                    (LEFT + WIDTH + 120, tall * len(panels), body))
