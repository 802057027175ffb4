"""What sections 4.3 and 6 of the paper say, as checks that published and simulated numbers go through alike."""


def gang_near_j(get):
    ratios = [slowdown / int(j) for cell in get(system="gang") for j, slowdown in cell["slowdowns"].items()]
    return max(abs(1 - ratio) for ratio in ratios) <= 0.13, f"s_j / j from {min(ratios):.3f} to {max(ratios):.3f}"


def gang_one_job_uses_all(get):
    shares = [cell["cpu"] for cell in get(system="gang")]
    return min(shares) >= 0.99, f"%CPU from {min(shares):.0%}"


def matmul_insensitive(get):
    values = [cell["slowdowns"]["8"] / 8 for cell in get(program="matmul", system="local")]
    return max(values) - min(values) <= 0.1 and 0.77 <= min(values), f"s_8 / 8 from {min(values):.2f} to {max(values):.2f}"


def lu_falls(get):
    cells = get(program="lu", system="local")
    values = [cell["slowdowns"]["8"] for cell in cells]
    # The paper's own numbers do not fall from p = 8 to 16.
    rises = sum(later > before for before, later in zip(values, values[1:]))
    return rises <= 1 and values[-1] <= 0.65 * values[0], "s_8 = " + " ".join(f"{value:.2f}" for value in values)


def cpu_falls(get):
    shares = {program: [cell["cpu"] for cell in get(program=program, system="local")] for program in ("matmul", "lu")}
    falls = all(values[-1] < values[0] for values in shares.values())
    below = all(lu < matmul for lu, matmul in zip(shares["lu"], shares["matmul"]))
    return falls and below, "; ".join(f"{program} {values[0]:.0%} to {values[-1]:.0%}" for program, values in shares.items())


def single_gang_faster(get):
    ratios = [gang["t1_s"] / local["t1_s"] for local, gang in zip(get(program="lu", system="local"), get(program="lu", system="gang"))]
    return ratios[-1] < 1, "t_1 of SCore over LAM: " + " ".join(f"{ratio:.2f}" for ratio in ratios)


def local_faster(get):
    ratios = [absolute(local, gang, j) for local, gang in pairs(get) for j in local["slowdowns"]]
    return min(ratios) > 1, f"t_j of SCore over LAM from {min(ratios):.2f} to {max(ratios):.2f}"


def local_much_faster(get):
    local, gang = (get(program="lu", system=system)[-1] for system in ("local", "gang"))
    ratio = absolute(local, gang, "8")
    return local["p"] == 32 and 1.6 <= ratio <= 2.0, f"t_8 of SCore over LAM: {ratio:.2f}"


def two_processes_overlap(get):
    cell = get(program="matmul", system="local")[0]
    return cell["p"] == 2 and cell["cpu"] >= 0.98 and cell["slowdowns"]["8"] <= 7.2, f"%CPU {cell['cpu']:.0%}, s_8 {cell['slowdowns']['8']:.2f}"


def matmul_far_from_ideal(get):
    cell = get(program="matmul", system="local")[-1]
    ideal = 8 * cell["cpu"]
    return cell["slowdowns"]["8"] >= 1.2 * ideal, f"p = {cell['p']:.0f}: s_8 {cell['slowdowns']['8']:.2f}; 8 × %CPU is {ideal:.2f}"


CLAIMS = [
    ("Gang: s_j close to j (within 13 %)", gang_near_j),
    ("Gang: a single job uses 100 % of the CPUs", gang_one_job_uses_all),
    ("Local: %CPU of a single job falls with p, and is lower for LU", cpu_falls),
    ("Local: matrix multiply's s_8 is a little below 8, whatever p is (within 0.1 of each other, above 0.77)", matmul_insensitive),
    ("Local: LU's slowdowns fall with p (s_8 by a third in all, at all steps but one)", lu_falls),
    ("A single LU is faster under SCore for large p", single_gang_faster),
    ("For every p and j ≥ 2 local scheduling is faster in absolute time", local_faster),
    ("Up to 80 % faster for LU, j = 8, p = 32 (1.6 to 2.0 times)", local_much_faster),
    ("p = 2: jobs overlap (s_8 ≤ 7.2) though one uses both CPUs", two_processes_overlap),
    ("Matrix multiply overlaps far less than its %CPU would permit (s_8 a fifth above 8 × %CPU)", matmul_far_from_ideal),
]


def pairs(get):
    return zip(get(system="local"), get(system="gang"))


def absolute(local, gang, j):
    return gang["t1_s"] * gang["slowdowns"][j] / (local["t1_s"] * local["slowdowns"][j])


def verdicts(cells):
    """Each statement: whether it holds for the published numbers, and for the simulated ones. Of the same p and j both."""
    def getter(which):
        def get(**wanted):
            chosen = [cell for cell in cells if all(cell[name] == value for name, value in wanted.items())]
            simulated_j = {j for cell in cells for j in cell["simulated"]["slowdowns"]}
            ordered = sorted(chosen, key=lambda cell: (cell["program"], cell["p"]))
            return [
                {"p": cell["p"], **cell[which], "slowdowns": {j: s for j, s in cell[which]["slowdowns"].items() if j in simulated_j}}
                for cell in ordered
            ]
        return get

    found = []
    for statement, check in CLAIMS:
        entry = {"statement": statement}
        for which in ("published", "simulated"):
            try:
                holds, numbers = check(getter(which))
            except (IndexError, KeyError):
                holds, numbers = None, "not simulated"
            entry[which] = {"holds": holds, "numbers": numbers}
        found.append(entry)
    return found
