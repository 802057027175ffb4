use super::*;
use crate::cost::Kind;
use crate::machine::shipped;

fn problem(n: u32, grid: &str, block: u32) -> Problem {
    Problem::new(n, grid.parse().unwrap(), block).unwrap()
}

fn of_kind(cost: &Cost, kind: Kind) -> f64 {
    cost.terms.iter().filter(|term| term.kind == kind).map(|term| term.messages + term.words).sum()
}

#[test]
fn one_process_does_all_the_operations_and_sends_nothing() {
    // 2/3 N³ − N²/2: the operations of LU. The model's panels count ω² for each row, half a block too many.
    let mut bunyip = shipped("bunyip").unwrap();
    bunyip.compute.flop_ns_level3 = 1.0;
    bunyip.compute.flop_ns_level2 = Some(1.0);
    for n in [600_u32, 1230] {
        let alone = cost(&bunyip, &problem(n, "1x1", 30));
        let flops = alone.time_s() * 1e9;
        let whole = 2.0 / 3.0 * f64::from(n).powi(3);
        assert!((flops / whole - 1.0).abs() < 2.0 * 30.0 / f64::from(n), "{flops} {whole}");
        assert_eq!((alone.messages(), alone.words()), (0.0, 0.0));
    }
}

#[test]
fn has_the_papers_orders() {
    // Section 4.1: doubling N doubles the startups, and multiplies the volume by 4 and the computation by
    // 8, nearly.
    let bunyip = shipped("bunyip").unwrap();
    let [small, large] = [20_000, 40_000].map(|n| cost(&bunyip, &problem(n, "8x4", 60)));
    let near = |value: f64, goal: f64| assert!((value / goal - 1.0).abs() < 0.02, "{value} {goal}");
    near(large.messages() / small.messages(), 2.0);
    near(large.words() / small.words(), 4.0);
    near(large.terms[0].time_s / small.terms[0].time_s, 8.0);
    // N lg P, and N² lg P / Q.
    let [two, eight] = ["2x4", "8x4"].map(|grid| cost(&bunyip, &problem(20_000, grid, 60)));
    let term = |cost: &Cost, name: &str| *cost.terms.iter().find(|term| term.name == name).unwrap();
    near(term(&eight, "pivot search").messages / term(&two, "pivot search").messages, 3.0);
    near(term(&eight, "U broadcasts").words / term(&two, "U broadcasts").words, 3.0);
    let wider = cost(&bunyip, &problem(20_000, "8x8", 60));
    near(term(&eight, "U broadcasts").words / term(&wider, "U broadcasts").words, 2.0);
    near(term(&eight, "update (level 3)").time_s / term(&wider, "update (level 3)").time_s, 2.0);
}

#[test]
fn the_leading_terms_are_those_of_the_derivation() {
    let n = 30_000.0;
    let all = cost(&shipped("bunyip").unwrap(), &problem(30_000, "8x4", 60));
    let words = |name: &str| all.terms.iter().find(|term| term.name == name).unwrap().words;
    let near = |value: f64, goal: f64| assert!((value / goal - 1.0).abs() < 0.01, "{value} {goal}");
    near(words("U broadcasts"), n * n / 2.0 / 4.0 * 3.0);
    near(words("panel broadcasts"), n * n / 2.0 / 8.0 * 2.0);
    near(words("row exchanges"), 7.0 / 8.0 * 2.0 * n * n / 4.0);
    assert!(of_kind(&all, Kind::Startup) > 6.0 * n);
}

#[test]
fn the_owner_of_the_most_has_no_less_than_an_even_part() {
    for (length, block, parts, most) in
        [(600, 60, 4, 180), (600, 60, 1, 600), (30, 60, 4, 30), (0, 60, 4, 0), (61, 60, 2, 60)]
    {
        assert_eq!(most_owned(length, block, parts), most, "{length} {block} {parts}");
    }
    let imbalance = |grid| cost(&shipped("bunyip").unwrap(), &problem(6000, grid, 60)).terms[3].time_s;
    assert!(imbalance("8x4") > 0.5);
    assert!(imbalance("1x1").abs() < 1e-9);
}
