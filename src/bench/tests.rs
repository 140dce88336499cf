use super::cost::{Networks, lenet, logistic};
use super::growth::{Series, Variable};
use super::*;
use crate::backend::{Flex, Precision, Session};

fn tiny() -> Bench {
    let settings = Settings { seconds: 0.01, size: Size::Tiny, allocations: None };
    Bench { session: Session::open::<Flex>(Precision::F32).unwrap(), settings }
}

#[test]
fn every_workload_runs_and_its_times_are_in_order() {
    let bench = tiny();
    let mut names = Vec::new();
    for workload in Workload::ALL {
        for Line { record, cost, allocations } in workload.measure(&bench).unwrap() {
            assert!(record.name.starts_with(&workload.to_string()), "{}", record.name);
            assert!(0.0 <= record.min && record.min <= record.median && record.median <= record.max, "{record:?}");
            assert!(record.n >= 3, "{record:?}");
            assert_eq!(record.implementation, "fedstein/flex");
            assert!(cost.is_none_or(|cost| cost.flops > 0.0 && cost.bytes > 0.0), "{}", record.name);
            assert_eq!(allocations, None);
            names.push(record.name);
        }
    }
    let count = names.len();
    names.sort();
    names.dedup();
    assert_eq!(names.len(), count, "a name is there twice: {names:?}");
}

#[test]
fn a_record_has_the_keys_of_the_yardsticks() {
    let line = &Workload::W7.measure(&tiny()).unwrap()[0];
    let value = serde_json::to_value(&line.record).unwrap();
    let keys: Vec<&str> = value.as_object().unwrap().keys().map(String::as_str).collect();
    // These are the keys of `bench` in common.py.
    assert_eq!(keys, ["name", "impl", "median", "min", "max", "threads", "n", "load", "foreign", "note", "t"]);
    assert!(value["threads"].is_u64(), "{value}");
}

#[test]
fn ceilings_are_positive_and_a_roofline_adds_both_terms() {
    let ceilings = Ceilings::measure(&tiny()).unwrap();
    assert!(ceilings.gflops > 0.0 && ceilings.gbs > 0.0, "{ceilings:?}");
    // RESULTS.md of the yardsticks has for W1, N=20, B=100 at 204.3 GFLOP/s and 43.6 GB/s: 5.29 ms (4.13 + 1.17).
    let ceilings = Ceilings { gflops: 204.3, gbs: 43.6 };
    assert!((ceilings.milliseconds(Networks::mnist(20).svgd_step(100)) - 5.29).abs() < 0.005);
}

/// The columns GFLOP and MB of the yardsticks' RESULTS.md, printed there with three digits.
#[test]
fn work_is_that_of_the_yardsticks() {
    let [ten, twenty] = [10, 20].map(Networks::mnist);
    let cases = [
        ("W1 N=20 B=100", twenty.svgd_step(100), 0.843, 50.9),
        ("W1 N=10 B=250", ten.svgd_step(250), 0.853, 25.4),
        ("W1 N=100 B=100", Networks::mnist(100).svgd_step(100), 8.03, 254.0),
        ("W2", twenty.dsvgd_round(100, 200, 200), 324.0, 2.93e4),
        ("W3 N=6", logistic(6, 100, 54, 200), 0.029, 4.32),
        ("W3 N=100", logistic(100, 100, 54, 200), 1.14, 4.32),
        ("W4", twenty.selection(120, 400), 322.0, 2.44e3),
        ("W4a", twenty.scores(120, 400), 307.0, 913.0),
        ("W5a", ten.fedwba_clients(10, 50, 250), 442.0, 1.59e4),
        // The three iterations are those of the line's note.
        ("W5b", ten.barycenter(50, 3), 3.98, 1.11e3),
        ("W5", ten.fedwba_clients(10, 50, 250).plus(ten.barycenter(50, 3)), 446.0, 1.7e4),
        ("W6", twenty.prediction(10_000), 31.8, 37.4),
        ("W7", lenet(10, 250), 30.3, 650.0),
    ];
    for (name, cost, gflop, megabytes) in cases {
        // The tolerance is half a unit of the last digit printed; W6 rounds its images to 31 MB.
        let near = |value: f64, printed: f64| (value / printed - 1.0).abs() < 0.013;
        assert!(near(1e-9 * cost.flops, gflop), "{name}: {} GFLOP", 1e-9 * cost.flops);
        assert!(near(1e-6 * cost.bytes, megabytes), "{name}: {} MB", 1e-6 * cost.bytes);
    }
}

/// Written out for 20 networks 784-100-10 with d = 79,510, which are 1,590,200 coordinates.
#[test]
fn the_work_of_a_visit_with_newton_factors_is_that_of_its_products() {
    let networks = Networks::mnist(20);
    let coordinates = 1_590_200.0;
    // Ten rows of 101 weights times 101² second moments; a difference, a product and a sum in each coordinate.
    let sites = 20.0 * 2.0 * 10.0 * 10_201.0 + 3.0 * coordinates;
    let step = networks.svgd_step(100).flops + sites;
    // Each row of a client: 784·100 and 100·10 forward, 10·100 backward, 101² second moments.
    let curvature = 3000.0 * 20.0 * 2.0 * (78_400.0 + 1_000.0 + 1_000.0 + 10_201.0);
    let images = 3000.0 * 784.0 * 4.0;
    let visit = 200.0 * step + networks.scores(1, 3000).flops + curvature;
    let cases = [
        ("step", networks.newton_step(100), step, 10.0 * 4.0 * coordinates),
        ("curvature", networks.curvature(3000), curvature, images + 4.0 * coordinates),
        ("visit", networks.newton_visit(100, 3000, 200), visit, 8008.0 * coordinates + 2.0 * images),
    ];
    for (name, cost, flops, bytes) in cases {
        assert!((cost.flops / flops - 1.0).abs() < 1e-12, "{name}: {} and not {flops} operations", cost.flops);
        assert!((cost.bytes / bytes - 1.0).abs() < 1e-12, "{name}: {} and not {bytes} bytes", cost.bytes);
    }
}

#[test]
fn units_in_turn_run_equally_often() {
    let order = std::cell::RefCell::new(String::new());
    let unit = |name: char| {
        order.borrow_mut().push(name);
        Ok(())
    };
    let timed = tiny().time_in_turn([&mut || unit('a'), &mut || unit('b')]).unwrap();
    let order = order.into_inner();
    assert_eq!(order, "ab".repeat(order.len() / 2));
    // Some of the units warm up.
    assert!(timed.iter().all(|timed| (3..order.len() / 2).contains(&timed.milliseconds.len())), "{order}, {timed:?}");
}

#[test]
fn a_workload_is_known_in_either_case_and_others_are_refused_with_the_list() {
    assert_eq!("w4".parse(), Ok(Workload::W4));
    let refusal = "W9".parse::<Workload>().unwrap_err();
    assert!(Workload::ALL.iter().all(|known| refusal.contains(&known.to_string())), "{refusal}");
}

#[test]
fn a_power_law_has_its_own_exponent() {
    let points = [1usize, 2, 4, 8].map(|x| (x, 3.0 * (x as f64).powf(1.5))).to_vec();
    let series = Series { variable: Variable::Particles, points };
    assert!((series.exponent() - 1.5).abs() < 1e-12 && (series.last_exponent() - 1.5).abs() < 1e-12);
}

#[test]
fn growth_is_measured_and_drawn() {
    let bench = tiny();
    let all: Vec<Series> = Variable::ALL.into_iter().map(|variable| variable.measure(&bench).unwrap()).collect();
    assert!(all.iter().all(|series| series.points.len() == 2 && series.exponent().is_finite()), "{all:?}");
    let svg = growth::picture(&all, "flex").svg().unwrap();
    assert!(["N from 2", "K from 2", "B from 2"].iter().all(|name| svg.contains(name)), "{svg}");
}
