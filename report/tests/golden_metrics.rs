//! Metrics against the golden cases (tests/golden/*.json), every case at its f64 tolerance.

use std::collections::BTreeMap;

use fedstein_report::metrics::*;
use serde_json::{Map, Value, json};

type Handler = fn(&Value) -> Result<Value, MetricError>;

/// Runs every case of a file; a case without a handler and an expected field without a computed one
/// both fail.
fn check_file(text: &str, handlers: &[(&str, Handler)]) {
    let file: Value = serde_json::from_str(text).expect("the golden file is JSON");
    let handlers: BTreeMap<&str, Handler> = handlers.iter().copied().collect();
    let cases = file["cases"].as_array().expect("cases");
    let mut failures = Vec::new();
    for case in cases {
        let name = case["name"].as_str().expect("name");
        let Some(handler) = handlers.get(name) else {
            failures.push(format!("{name}: no handler"));
            continue;
        };
        let tolerance = &case["tolerance"]["f64"];
        let tolerance = (number(&tolerance["rtol"]), number(&tolerance["atol"]));
        match handler(&case["inputs"]) {
            Ok(got) => compare(name, &got, &case["expected"], tolerance, &mut failures),
            Err(error) => failures.push(format!("{name}: {error}")),
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
    assert_eq!(cases.len(), handlers.len(), "a handler's case is missing from the file");
}

/// `|got - want| <= atol + rtol |want|` on every leaf of `want`; null only equals null.
fn compare(at: &str, got: &Value, want: &Value, tolerance: (f64, f64), failures: &mut Vec<String>) {
    match want {
        Value::Object(fields) => {
            for (key, field) in fields {
                match got.get(key) {
                    Some(value) => compare(&format!("{at}.{key}"), value, field, tolerance, failures),
                    None => failures.push(format!("{at}.{key}: not computed")),
                }
            }
        }
        Value::Array(items) => {
            if got.as_array().is_none_or(|a| a.len() != items.len()) {
                failures.push(format!("{at}: got {got}, want {} items", items.len()));
                return;
            }
            for (i, item) in items.iter().enumerate() {
                compare(&format!("{at}[{i}]"), &got[i], item, tolerance, failures);
            }
        }
        Value::Number(_) => {
            let want = number(want);
            let close = got.as_f64().is_some_and(|g| (g - want).abs() <= tolerance.1 + tolerance.0 * want.abs());
            if !close {
                failures.push(format!("{at}: got {got}, want {want}"));
            }
        }
        _ if got == want => {}
        _ => failures.push(format!("{at}: got {got}, want {want}")),
    }
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value} is not a number"))
}

fn numbers(value: &Value) -> Vec<f64> {
    let items = value.as_array().expect("a list");
    items.iter().map(number).collect()
}

/// A list of any depth in row-major order.
fn flat(value: &Value) -> Vec<f64> {
    value.as_array().map_or_else(|| vec![number(value)], |items| items.iter().flat_map(flat).collect())
}

fn flags(value: &Value) -> Vec<bool> {
    numbers(value).iter().map(|v| *v == 1.0).collect()
}

fn labels(value: &Value) -> Vec<usize> {
    numbers(value).iter().map(|v| *v as usize).collect()
}

fn bins(inputs: &Value) -> usize {
    number(&inputs["bins"]) as usize
}

fn length(value: &Value) -> usize {
    value.as_array().expect("a list").len()
}

fn summary(calibration: &Calibration) -> Value {
    let bin = |b: &Bin| json!({"n": b.n, "acc": b.accuracy, "conf": b.confidence});
    json!({
        "ece": calibration.ece(), "mce": calibration.mce(), "rmsce": calibration.rmsce(),
        "ace_unweighted": calibration.ace_unweighted(), "signed_gap": calibration.signed_gap(),
        "bins": calibration.bins().iter().map(bin).collect::<Vec<_>>(),
    })
}

/// Confidences, and whether each prediction was right.
fn outcomes(inputs: &Value) -> (Vec<f64>, Vec<bool>) {
    (numbers(&inputs["conf"]), flags(&inputs["correct"]))
}

fn equal_width_bins(inputs: &Value) -> Result<Value, MetricError> {
    let (conf, correct) = outcomes(inputs);
    Ok(summary(&equal_width(&conf, &correct, bins(inputs))?))
}

fn other_edge_rule(inputs: &Value) -> Result<Value, MetricError> {
    let (conf, correct) = outcomes(inputs);
    let got = equal_width_by(BinRule::LowerClosed, &conf, &correct, bins(inputs))?;
    Ok(summary(&got))
}

fn equal_mass_bins(inputs: &Value) -> Result<Value, MetricError> {
    let (conf, correct) = outcomes(inputs);
    Ok(json!({"ece_equal_mass": equal_mass(&conf, &correct, bins(inputs))?.ece()}))
}

fn predictions_of(inputs: &Value) -> Result<ClassPredictions<'static>, MetricError> {
    ClassPredictions::new(labels(&inputs["labels"]), length(&inputs["probs"][0]), flat(&inputs["probs"]))
}

fn whole_predictions(inputs: &Value) -> Result<Value, MetricError> {
    let predictions = predictions_of(inputs)?;
    let bins = bins(inputs);
    let top = predictions.top_label();
    let wrong: Vec<bool> = top.correct.iter().map(|right| !right).collect();
    let doubt: Vec<f64> = top.confidence.iter().map(|c| -c).collect();
    let evaluation = Evaluation::of_predictions(&predictions, bins)?;
    let mut got = summary(&equal_width(&top.confidence, &top.correct, bins)?);
    // The record that a run writes every round must agree with the functions.
    for (field, value) in [("ece", evaluation.ece), ("mce", evaluation.mce), ("signed_gap", evaluation.signed_gap)] {
        assert_eq!(got[field].as_f64(), value, "{field}");
    }
    let close = |a: f64, b: Option<f64>| assert!(b.is_some_and(|b| (a - b).abs() < 1e-12));
    close(accuracy(&predictions), evaluation.accuracy);
    close(nll(&predictions).value, evaluation.nll);
    close(brier(&predictions), evaluation.brier);
    let more = json!({
        "n": evaluation.rows, "accuracy": accuracy(&predictions), "nll": nll(&predictions).value,
        "brier": brier(&predictions), "classwise_ece": classwise_ece(&predictions, bins)?,
        "classwise_ece_mean": evaluation.classwise_ece, "mean_entropy": evaluation.entropy,
        "ece_equal_mass": evaluation.ace, "auroc_misclassification": auroc(&doubt, &wrong)?,
        "aurc": aurc(&top.confidence, &wrong)?,
    });
    let fields: Map<String, Value> = more.as_object().cloned().unwrap_or_default();
    got.as_object_mut().expect("an object").extend(fields);
    Ok(got)
}

fn positive_mode(inputs: &Value) -> Result<Value, MetricError> {
    let rows = numbers(&inputs["p_positive"]).iter().flat_map(|p| [1.0 - p, *p]).collect();
    let predictions = ClassPredictions::new(labels(&inputs["labels"]), 2, rows)?;
    let got = binary_positive(&predictions, bins(inputs))?.expect("two classes");
    Ok(json!({"ece": got.ece(), "mce": got.mce()}))
}

fn debiased(inputs: &Value) -> Result<Value, MetricError> {
    let (conf, correct) = outcomes(inputs);
    let got = equal_width(&conf, &correct, bins(inputs))?;
    let (debiased, plugin) = (got.debiased_l2_squared(), got.plugin_l2_squared());
    Ok(json!({"debiased_l2_sq": debiased, "plugin_l2_sq": plugin}))
}

fn entropy_split(inputs: &Value) -> Result<Value, MetricError> {
    let probs = &inputs["probs[particle][sample][class]"];
    let (rows, classes) = (length(&probs[0]), length(&probs[0][0]));
    let log_probs = flat(probs).iter().map(|p| p.ln()).collect();
    let log_probs = ParticleLogProbs::new(length(probs), rows, classes, log_probs)?;
    let split = RowUncertainty::new(&log_probs);
    let mean: Vec<Vec<f64>> = log_probs.ensemble().chunks(classes).map(<[f64]>::to_vec).collect();
    if log_probs.particles() == 1 {
        assert!(split.epistemic.iter().all(|mi| *mi == 0.0), "one particle: exactly 0");
    }
    Ok(json!({
        "mean_probs": mean, "total": split.total, "aleatoric": split.aleatoric, "epistemic": split.epistemic,
    }))
}

fn ranking(inputs: &Value) -> Result<Value, MetricError> {
    let (score, positive) = (numbers(&inputs["score"]), flags(&inputs["positive"]));
    Ok(json!({"auroc": auroc(&score, &positive)?, "fpr95": fpr95(&score, &positive)?}))
}

fn risk(inputs: &Value) -> Result<Value, MetricError> {
    Ok(json!({"aurc": aurc(&numbers(&inputs["conf"]), &flags(&inputs["error"]))?}))
}

fn temperature(inputs: &Value) -> Result<Value, MetricError> {
    let logits = &inputs["logits"];
    let fit = fit_temperature(&flat(logits), &labels(&inputs["labels"]), length(&logits[0]))?;
    Ok(json!({"T": fit.temperature, "nll_before": fit.nll_before, "nll_after": fit.nll_after}))
}

#[test]
fn every_golden_calibration_case_passes() {
    check_file(
        include_str!("../../tests/golden/calibration.json"),
        &[
            ("every confidence on an edge, 10 bins", equal_width_bins),
            ("the same with the other edge rule [lo,hi), last bin closed", other_edge_rule),
            ("edge values 0.2 0.4 0.6 0.8 of 15 bins (j/15 equals the decimal in f64)", equal_width_bins),
            ("just above an edge", equal_width_bins),
            ("products conf*100 that round up in f64: ceil(conf*100) is wrong", equal_width_bins),
            ("confidence exactly 1 shares the last bin", equal_width_bins),
            ("confidence exactly 0 and 1, two bins", equal_width_bins),
            ("two bins", equal_width_bins),
            ("12 points, 99 bins", equal_width_bins),
            ("12 points, 100 bins", equal_width_bins),
            ("one bin: ECE is |accuracy - mean confidence|", equal_width_bins),
            ("a single sample", equal_width_bins),
            ("all correct with confidence 1", equal_width_bins),
            ("all wrong with confidence 1", equal_width_bins),
            ("perfectly calibrated bins", equal_width_bins),
            ("published: 6 of 3 classes top label, 3 bins, 0.075", equal_width_bins),
            ("published: 1/3", equal_width_bins),
            ("mostly empty bins, 1000 bins", equal_width_bins),
            ("equal-mass ECE, published 0.278", equal_mass_bins),
            ("equal-mass ECE, 7 samples in 3 parts (3,2,2)", equal_mass_bins),
            ("equal-mass ECE, more bins than samples", equal_mass_bins),
            ("14 samples, 3 classes (published set)", whole_predictions),
            ("two classes, ties and certain predictions", whole_predictions),
            ("probability 0 at the true label: NLL uses the floor 1e-12", whole_predictions),
            ("uniform probabilities, 4 classes", whole_predictions),
            ("argmax ties go to the lowest index", whole_predictions),
            ("24 samples, 3 classes, 5 bins", whole_predictions),
            ("24 samples, 3 classes, 15 bins", whole_predictions),
            ("20 samples, two classes, 10 bins", whole_predictions),
            ("binary, P(y=1) against the label (positive mode)", positive_mode),
            ("debiased squared calibration error, 5 bins (optional)", debiased),
            ("entropy split, two particles, two samples", entropy_split),
            ("particles agree: epistemic 0", entropy_split),
            ("particles disagree with certainty: epistemic ln 2", entropy_split),
            ("three certain, all different: ln 3, one class never used", entropy_split),
            ("four particles, five samples, three classes", entropy_split),
            ("one particle: epistemic exactly 0", entropy_split),
            ("AUROC with a tie", ranking),
            ("AUROC perfect", ranking),
            ("AUROC reversed", ranking),
            ("AUROC constant scores", ranking),
            ("AUROC with one class only", ranking),
            ("FPR at 95 per cent TPR, separated", ranking),
            ("FPR at 95 per cent TPR, 30 scores", ranking),
            ("FPR at 95 per cent TPR, all scores equal", ranking),
            ("AURC, one error at the lowest confidence", risk),
            ("AURC, one error at the highest confidence", risk),
            ("AURC, no error", risk),
            ("AURC, all wrong", risk),
            ("AURC, 9 samples", risk),
            ("temperature scaling, 20 samples (over-confident logits)", temperature),
            ("temperature scaling, 20 samples (under-confident logits)", temperature),
        ],
    );
}

fn regression_summary(predictions: &RegressionPredictions<'_>) -> Result<Value, MetricError> {
    let table = coverage_table(predictions, &COVERAGE_LEVELS)?;
    let column = |f: &dyn Fn(&CoverageRow) -> Value| -> Map<String, Value> {
        table.iter().map(|row| (row.level.to_string(), f(row))).collect()
    };
    let moments = predictive_moments(predictions);
    Ok(json!({
        "nll": log_likelihood(predictions).map(|l| -l), "crps": crps(predictions), "rmse": rmse(predictions),
        "mae": mae(predictions), "sharpness": sharpness(predictions), "pit": pit(predictions),
        "coverage": column(&|row| json!(row.coverage)), "mean_width": column(&|row| json!(row.mean_width)),
        "predictive_mean": moments.mean, "predictive_variance": moments.variance,
        "aleatoric_variance": moments.aleatoric, "epistemic_variance": moments.epistemic,
    }))
}

fn one_gaussian(inputs: &Value) -> Result<RegressionPredictions<'static>, MetricError> {
    let precision = numbers(&inputs["sd"]).iter().map(|sd| 1.0 / (sd * sd)).collect();
    RegressionPredictions::new(1, numbers(&inputs["mu"]), precision, numbers(&inputs["y"]))
}

fn gaussians(inputs: &Value) -> Result<Value, MetricError> {
    regression_summary(&one_gaussian(inputs)?)
}

fn mixture_of(inputs: &Value) -> Result<RegressionPredictions<'static>, MetricError> {
    let (mean, precision) = (&inputs["mu[particle][sample]"], &inputs["gamma[particle][sample]"]);
    RegressionPredictions::new(length(mean), flat(mean), flat(precision), numbers(&inputs["y"]))
}

fn mixture(inputs: &Value) -> Result<Value, MetricError> {
    regression_summary(&mixture_of(inputs)?)
}

fn original_scale(inputs: &Value) -> Result<Value, MetricError> {
    let scale = Scale { mean: number(&inputs["y_mean"]), sd: number(&inputs["y_sd"]) };
    let standardised = mixture_of(&inputs["standardised"])?;
    let predictions = RegressionPredictions::new(
        standardised.particles(),
        standardised.mean().iter().map(|z| scale.value(*z)).collect(),
        standardised.precision().iter().map(|precision| scale.precision(*precision)).collect(),
        standardised.target().iter().map(|z| scale.value(*z)).collect(),
    )?;
    let got = regression_summary(&predictions)?;
    let evaluation = Evaluation::regression(&predictions);
    for (field, value) in [("rmse", evaluation.rmse), ("crps", evaluation.crps), ("nll", evaluation.nll)] {
        assert_eq!(got[field].as_f64(), value, "{field}");
    }
    assert_eq!(got["coverage"]["0.9"].as_f64(), evaluation.coverage_90);
    Ok(got)
}

fn levels(inputs: &Value) -> Result<Value, MetricError> {
    assert_eq!(inputs["levels"], "numpy.linspace(0, 1, 100)");
    let pit = pit(&one_gaussian(inputs)?);
    let (quantiles, intervals) =
        (quantile_calibration(&pit, &level_grid(100)), interval_calibration(&pit, &level_grid(100)));
    Ok(json!({
        "mace_quantile": quantiles.mean_absolute, "rmsce_quantile": quantiles.root_mean_squared,
        "mace_interval": intervals.mean_absolute, "rmsce_interval": intervals.root_mean_squared,
    }))
}

fn ensemble(inputs: &Value) -> Result<Value, MetricError> {
    Ok(json!(ensemble_crps(&numbers(&inputs["members"]), number(&inputs["y"]))?))
}

#[test]
fn every_golden_regression_case_passes() {
    check_file(
        include_str!("../../tests/golden/regression_metrics.json"),
        &[
            ("three Gaussians (set of uncertainty-toolbox)", gaussians),
            ("exact predictions", gaussians),
            ("far tail: cdf saturates, values stay finite", gaussians),
            ("mean absolute calibration error of quantiles and intervals, 100 levels", levels),
            ("ensemble CRPS {0,1,3} at 1.2", ensemble),
            ("ensemble CRPS one member: absolute error", ensemble),
            ("ensemble CRPS identical members", ensemble),
            ("ensemble CRPS seven members", ensemble),
            ("mixture of three particles, one sample", mixture),
            ("one particle: a plain Gaussian", mixture),
            ("two well separated particles, y between them", mixture),
            ("four particles, six samples", mixture),
            ("log-sum-exp is needed: far observation", mixture),
            ("original scale: y = 12.5 + 3.25 z", original_scale),
        ],
    );
}

/// Labels and p(y = 1) of two classes.
fn two_classes(inputs: &Value) -> Result<ClassPredictions<'static>, MetricError> {
    let probabilities = numbers(&inputs["p"]).iter().flat_map(|p| [1.0 - p, *p]).collect();
    ClassPredictions::new(labels(&inputs["label"]), 2, probabilities)
}

fn decisions(inputs: &Value) -> Result<Value, MetricError> {
    let predictions = two_classes(inputs)?;
    let positive: Vec<bool> = predictions.labels().iter().map(|label| *label == 1).collect();
    let ranking = Ranking::new(&numbers(&inputs["p"]), &positive)?;
    let of = Recalibration::of(&predictions).expect("two classes");
    let estimate = |of: Option<Estimate>| of.map(|of| [of.value, of.standard_error]);
    let thresholds = threshold_table(&predictions, &numbers(&inputs["thresholds"])).expect("two classes");
    let row = |of: &ThresholdRow| {
        json!([
            of.true_positives,
            of.false_positives,
            of.false_negatives,
            of.true_negatives,
            of.net_benefit,
            of.net_benefit_all
        ])
    };
    let scored = ScoredClasses::of_predictions(&predictions, 15)?;
    let metric = |key| Metric::of_key(key).and_then(|metric| metric.classes).and_then(|classes| (classes.of)(&scored));
    assert_eq!(
        (metric("auroc"), metric("auprc")),
        (ranking.auroc(&ranking.once()), ranking.average_precision(&ranking.once()))
    );
    assert_eq!(metric("calibration_slope"), of.slope.map(|slope| slope.value));
    Ok(json!({
        "auroc": ranking.auroc(&ranking.once()), "auprc": ranking.average_precision(&ranking.once()), "intercept": estimate(of.intercept),
        "slope": estimate(of.slope), "in_the_large": estimate(of.in_the_large),
        "thresholds": thresholds.iter().map(row).collect::<Vec<_>>(),
    }))
}

fn confusion(inputs: &Value) -> Result<Value, MetricError> {
    let labels = labels(&inputs["label"]);
    let classes = length(&inputs["probabilities"][0]);
    let predictions = ClassPredictions::new(labels, classes, flat(&inputs["probabilities"]))?;
    Ok(json!(Confusion::of(&predictions).rows().collect::<Vec<_>>()))
}

/// The numbers of scikit-learn, statsmodels and dcurves; scripts/golden_binary.py writes them.
#[test]
fn decisions_between_two_classes_and_confusions_are_those_of_other_programs() {
    check_file(
        include_str!("../../tests/golden/binary_decisions.json"),
        &[
            ("over-confident probabilities, 160 rows", decisions),
            ("the same in steps of 0.05: ties", decisions),
            ("a rare class, 300 rows", decisions),
            ("confusion matrix of five classes", confusion),
        ],
    );
}
