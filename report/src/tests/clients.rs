//! The section on the clients' personal predictors.

use super::*;

/// Scores of rows of two classes with a confidence each, and whether it was right.
fn client(name: &str, index: usize, confidence: &[f64], right: impl Fn(usize) -> bool) -> SiteScores {
    let log_probs = confidence.iter().flat_map(|p| [p.ln(), (1.0 - p).ln()]).collect();
    let log_probs = ParticleLogProbs::new(1, confidence.len(), 2, log_probs).unwrap();
    let labels: Vec<usize> = (0..confidence.len()).map(|row| usize::from(!right(row))).collect();
    let mut scores = ClientScores::of_classes(2, 15);
    scores.add_classes(&log_probs, &labels).unwrap();
    SiteScores::of_sums(name.into(), index, &scores, None)
}

/// The rendered page of a run with these clients, and the order in which its table has their names.
fn page(clients: Vec<SiteScores>, names: &[&str]) -> (Rendered, Vec<String>) {
    let predictions = predictions();
    let rendered = render(&report(&predictions, Some(RunSummary { clients, ..run() }))).unwrap();
    let at = |name: &&str| {
        rendered.html.find(&format!("<tr><th scope=\"row\">{name}</th>")).map(|at| (at, (*name).to_owned()))
    };
    let mut found: Vec<_> = names.iter().filter_map(at).collect();
    found.sort_unstable();
    (rendered, found.into_iter().map(|(_, name)| name).collect())
}

#[test]
fn the_worst_calibrated_client_is_first_and_few_rows_tell_nothing() {
    // 400 rows with a confidence of 0.9: right as often as that; 30 points less often; and three rows, all wrong.
    let clients = [
        client("good", 0, &[0.9; 400], |row| row % 10 > 0),
        client("few", 1, &[0.6; 3], |row| row > 0),
        client("bad <ward>", 2, &[0.9; 400], |row| row % 10 > 3),
        client("mute", 3, &[0.9], |_| true),
    ];
    let empty =
        SiteScores { evaluation: Evaluation::default(), gap_interval: None, bins: Vec::new(), ..clients[3].clone() };
    let clients = [&clients[..3], &[empty]].concat();
    let (rendered, order) = page(clients, &["good", "few", "bad &lt;ward&gt;", "mute"]);
    // There is no verdict on three rows: they come last.
    assert_eq!(order, ["bad &lt;ward&gt;", "good", "few"]);
    assert!(rendered.html.contains("No scores of test rows came from mute"));
    let line = |name: &str| {
        rendered.html.split("<tr>").find(|line| line.starts_with(&format!("<th scope=\"row\">{name}"))).unwrap()
    };
    assert!(line("bad").contains("Over-confident by 30.0 points") && line("good").contains("No systematic"));
    assert!(line("few").contains("Too few rows to tell"));
    // SciPy: binomtest(240, 400).proportion_ci(0.95, "wilson") is 0.5513 to 0.6468.
    assert!(line("bad").contains("60.0\u{a0}%<br><small>55.1\u{a0}% to 64.7\u{a0}%</small>"), "{}", line("bad"));
    // 0.9 − 0.6 ± 1.96 √(0.24 / 400)
    assert!(line("bad").contains("<small>+25.2 to +34.8</small>"), "{}", line("bad"));
    let picture = rendered.clients.unwrap();
    assert!(
        picture.contains("bad &lt;ward&gt; \u{b7} 400 rows")
            && !picture.contains("NaN")
            && !picture.contains("mute \u{b7}")
    );
    let json: Value = serde_json::from_str(&rendered.json).unwrap();
    assert_eq!(json["run"]["clients"][2]["name"], "bad <ward>");
}

#[test]
fn clients_of_a_regression_have_their_coverage() {
    // Normals of variance 1 around 0, with the targets 0, 1 and 3: the central 90 % interval, ± 1.645, holds the first two, and
    // the central 50 % interval, ± 0.674, the zeros.
    let client = |name: &str, index: usize, [middle, misses]: [usize; 2]| {
        let target = |row: usize| if row < misses { 3.0 } else { f64::from(row >= misses + middle) };
        let targets: Vec<f64> = (0..200).map(target).collect();
        let of = RegressionPredictions::new(1, vec![0.0; 200], vec![1.0; 200], targets).unwrap();
        let mut scores = ClientScores::of_targets();
        scores.add_real(&of).unwrap();
        SiteScores::of_sums(name.into(), index, &scores, None)
    };
    let clients = vec![client("level", 0, [100, 20]), client("narrow", 1, [100, 90]), client("pointed", 2, [170, 20])];
    let (rendered, order) = page(clients, &["level", "narrow", "pointed"]);
    assert_eq!(order[0], "narrow");
    let line = |name: &str| {
        rendered.html.split("<tr>").find(|line| line.starts_with(&format!("<th scope=\"row\">{name}"))).unwrap()
    };
    assert!(line("level").contains("The intervals cover as many targets as they should"), "{}", line("level"));
    assert!(line("pointed").contains("intervals are too wide"), "{}", line("pointed"));
    let line = line("narrow");
    // SciPy: binomtest(110, 200).proportion_ci(0.95, "wilson") is 0.4808 to 0.6173.
    assert!(line.contains("55.0\u{a0}%<br><small>48.1\u{a0}% to 61.7\u{a0}%</small>"), "{line}");
    assert!(line.contains("the intervals are too narrow") && rendered.clients.is_none());
}

#[test]
fn scores_of_a_file_without_intervals_are_read() {
    let scores = client("a", 0, &[0.8; 10], |row| row > 1);
    let mut json = serde_json::to_value(&scores).unwrap();
    assert!(json["gap_interval"]["lo"].is_number());
    json.as_object_mut().unwrap().remove("gap_interval");
    let read: SiteScores = serde_json::from_value(json).unwrap();
    assert_eq!(read, SiteScores { gap_interval: None, ..scores });
    let (rendered, order) = page(vec![read], &["a"]);
    assert!(order == ["a"] && rendered.html.contains("<td>\u{2013}</td></tr>"));
}
