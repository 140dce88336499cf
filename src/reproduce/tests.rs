//! Tests of the embedded figures and of the format of their definitions.

use std::collections::BTreeSet;

use super::*;
use crate::experiment::config::{AlgorithmConfig, Config};
use crate::reproduce::figure::Term;

const SCALES: [Scale; 3] = [Scale::Quick, Scale::Middle, Scale::Full];

fn wanted(scale: Scale, only: Option<&str>) -> Wanted {
    Wanted { scale, seeds: Some(1..=1), backend: None, only: only.map(str::to_owned) }
}

fn grid(figure: &Figure, scale: Scale) -> Grid {
    Grid::new(figure, &wanted(scale, None))
}

fn resolved(id: &str, scale: Scale) -> BTreeSet<String> {
    let figure = find(id).unwrap();
    let grid = grid(&figure, scale);
    grid.cells.iter().filter_map(|cell| Some(grid.config(&figure, cell, 1).ok()?.1)).collect()
}

#[test]
fn every_figure_of_the_papers_exists_and_has_a_description() {
    let dsvgd = (2..=20).map(|n| format!("dsvgd/fig{n}"));
    let selection = (2..=5).map(|n| format!("selection/fig{n}"));
    let others =
        ["fig3", "table1", "table2", "table4", "table5", "table6", "table7"].map(|item| format!("fedwba/{item}"));
    let beyond = ["memory", "choices", "federations"].map(|item| format!("beyond/{item}"));
    let expected: Vec<String> = dsvgd.chain(selection).chain(others).chain(beyond).collect();
    assert_eq!(FIGURES.iter().map(|(id, _)| *id).collect::<Vec<_>>(), expected);
    for (id, _) in FIGURES {
        let figure = find(id).unwrap_or_else(|error| panic!("{error}"));
        assert!(!figure.title.is_empty() && !figure.choices.is_empty(), "{id}");
        assert!(!figure.targets.is_empty() || !figure.claims.is_empty(), "{id} checks nothing");
        for (word, label) in [("/fig", "Fig."), ("/table", "Table")] {
            if let Some((_, number)) = id.rsplit_once(word) {
                assert!(figure.paper.ends_with(&format!("{label} {number}")), "{id}: {}", figure.paper);
            }
        }
    }
}

#[test]
fn every_run_of_every_figure_is_a_valid_config_at_every_scale() {
    for (id, _) in FIGURES {
        let figure = find(id).unwrap();
        for scale in SCALES.into_iter().filter(|scale| *scale != Scale::Middle || figure.middle.is_some()) {
            let grid = grid(&figure, scale);
            for cell in &grid.cells {
                let config = grid.config(&figure, cell, 1);
                assert!(config.is_ok(), "{id}, {}: {}", grid.name(&figure, cell), config.unwrap_err());
            }
        }
    }
}

#[test]
fn every_quick_form_is_smaller_and_has_one_seed() {
    for (id, _) in FIGURES {
        let figure = find(id).unwrap();
        assert_eq!(figure.seeds.quick, 1, "{id}");
        let of = |scale| Grid::new(&figure, &Wanted { seeds: None, ..wanted(scale, None) }).count();
        assert!(of(Scale::Quick) < of(Scale::Full), "{id}: {} of {}", of(Scale::Quick), of(Scale::Full));
    }
}

#[test]
fn figures_of_the_same_runs_share_them() {
    for (id, other) in [
        ("dsvgd/fig13", "dsvgd/fig4"),
        ("dsvgd/fig18", "dsvgd/fig7"),
        ("dsvgd/fig8", "dsvgd/fig19"),
        ("fedwba/table4", "fedwba/table1"),
    ] {
        for scale in [Scale::Quick, Scale::Full] {
            let (own, theirs) = (resolved(id, scale), resolved(other, scale));
            assert!(!own.is_empty() && own.is_subset(&theirs), "{id} and {other}");
        }
    }
    // Round robin and random appear in both figures.
    let (ksd, hip) = (resolved("selection/fig2", Scale::Full), resolved("selection/fig3", Scale::Full));
    let shared = ksd.intersection(&hip).filter(|text| text.contains("\"covertype\""));
    assert_eq!(shared.count(), 2 * 2 * 2, "two schedules, two densities, two numbers of clients");
}

#[test]
fn table_1_runs_the_eleven_methods_of_the_paper_with_forms_of_averaging_newton_factors_and_each_particle_method() {
    let figure = find("fedwba/table1").unwrap();
    let grid = grid(&figure, Scale::Full);
    let cells = grid.cells.iter().filter(|cell| figure.panels[cell.panel].id == "mnist-k100");
    let configs: Vec<Config> = cells.map(|cell| grid.config(&figure, cell, 1).unwrap().0).collect();
    let kinds: BTreeSet<&str> = configs.iter().map(|config| config.algorithm.name()).collect();
    assert_eq!((configs.len(), kinds.len()), (17, 12));
    for config in configs {
        // All have 2000 visits: 100 rounds of twenty, or 2000 rounds of one.
        assert_eq!(config.rounds * config.schedule.clients(), 100 * 20, "{}", config.algorithm.name());
        assert!(config.evaluation.personal && config.rounds.is_multiple_of(config.evaluation.every));
    }
}

// Tests of the format.

const SMALL: &str = r#"
title = "T"
paper = "P, Fig. 1"
seeds = { full = 3 }
[base]
rounds = 7
data = { kind = "twonorm", rows = 400 }
model = { kind = "blr" }
algorithm = { kind = "dsvgd", particles = 6, distill_steps = 9, local_steps = 9 }
[quick]
algorithm = { distill_steps = 2, local_steps = 2 }
[[series]]
id = "dsvgd"
name = "DSVGD"
[[series]]
id = "fedavg"
name = "FedAvg"
set = { algorithm.kind = "fedavg" }
[[series]]
id = "svgd"
name = "SVGD"
set = { algorithm = { kind = "svgd", local_steps = 800 } }
quick = { algorithm.local_steps = 4 }
[[panel]]
id = "rounds"
title = "R"
y = "accuracy"
[[panel]]
id = "sweep"
title = "S"
x = "sweep"
y = "accuracy"
set = { rounds = 2 }
sweep = { keys = ["algorithm.particles"], full = [2, 4], quick = [2] }
"#;

fn parse(text: &str) -> Result<Figure, String> {
    let other = |id: &str| (id == "small").then_some(SMALL);
    Figure::parse("p/fig1", text, &other).map_err(|error| error.to_string())
}

fn config(figure: &Figure, name: &str, scale: Scale) -> Config {
    let grid = grid(figure, scale);
    let cell = grid.cells.iter().find(|cell| grid.name(figure, cell) == name).unwrap();
    grid.config(figure, cell, 1).unwrap().0
}

#[test]
fn later_layers_take_precedence_and_keys_of_a_replaced_kind_are_dropped() {
    let figure = parse(SMALL).unwrap();
    let steps = |config: &Config| match &config.algorithm {
        AlgorithmConfig::Dsvgd(dsvgd) => (dsvgd.particles, dsvgd.local.local_steps, dsvgd.distill_steps),
        AlgorithmConfig::Svgd(svgd) => (svgd.particles, svgd.local.local_steps, 0),
        AlgorithmConfig::Fedavg(fedavg) => (1, fedavg.local.local_steps, 0),
        other => panic!("{other:?}"),
    };
    let of = |name, scale| steps(&config(&figure, name, scale));
    assert_eq!(of("rounds/dsvgd", Scale::Full), (6, 9, 9));
    assert_eq!(of("rounds/svgd", Scale::Full), (6, 800, 0));
    assert_eq!(of("rounds/fedavg", Scale::Full), (1, 9, 0));
    assert_eq!(of("rounds/dsvgd", Scale::Quick), (6, 2, 2));
    assert_eq!(of("rounds/svgd", Scale::Quick), (6, 4, 0));
    assert_eq!(of("sweep/4/svgd", Scale::Full), (4, 800, 0));
    assert_eq!(config(&figure, "sweep/4/svgd", Scale::Full).rounds, 2);
    // A strict layer must not write a key that its kind does not use.
    let wrong = SMALL.replace("algorithm.kind = \"fedavg\"", "algorithm.kind = \"fedavg\", algorithm.particles = 3");
    let figure = parse(&wrong).unwrap();
    let grid = grid(&figure, Scale::Full);
    let message = grid.runs(&figure).unwrap_err().to_string();
    assert!(message.contains("p/fig1, rounds/fedavg") && message.contains("`algorithm.particles`"), "{message}");
}

#[test]
fn a_sweep_over_a_key_that_a_method_does_not_have_is_one_run() {
    let figure = parse(SMALL).unwrap();
    let grid = Grid::new(&figure, &Wanted { seeds: None, ..wanted(Scale::Full, Some("sweep")) });
    let runs = grid.runs(&figure).unwrap();
    // The runs are two values of DSVGD and of SVGD and one run of FedAvg, for three seeds.
    assert_eq!((runs.len(), grid.count()), (15, 15));
    // All runs of a seed come before the next seed.
    let seeds: Vec<u64> = runs.iter().map(|run| run.config.seed).collect();
    assert_eq!(seeds, [1, 2, 3].map(|seed| [seed; 5]).concat());
}

#[test]
fn a_sweep_over_words_and_numbers_keeps_its_order() {
    let places = |values: &str| -> Vec<Option<f64>> {
        let text = SMALL.replace("full = [2, 4]", &format!("full = [{values}]"));
        let figure = parse(&text.replace("\"algorithm.particles\"", "\"kernel.bandwidth\"")).unwrap();
        let grid = Grid::new(&figure, &wanted(Scale::Full, Some("dsvgd")));
        grid.cells.iter().filter(|cell| !cell.case.is_empty() && cell.series == 0).map(|cell| cell.x).collect()
    };
    assert_eq!(places("1, 12.5"), [Some(1.0), Some(12.5)]);
    assert_eq!(places("1.0, \"paper\", 12.0"), [None, None, None]);
}

#[test]
fn numbers_beside_a_target_are_known_metrics_and_statistics_of_one_curve() {
    let with = |also: &str| parse(&SMALL.replace("seeds =", &format!("also = [\"{also}\"]\nseeds =")));
    for (also, name) in [("personal_nll", "personal_nll"), ("uplink_mib", "uplink_mib"), ("accuracy 5", "accuracy, 5")]
    {
        let figure = with(also).unwrap();
        assert_eq!(figure.also.iter().map(|also| also.name.as_str()).collect::<Vec<_>>(), [name]);
    }
    assert!(with("personal_acuracy").unwrap_err().contains("did you mean `personal_accuracy`"));
    assert!(with("accuracy lats").unwrap_err().contains("`lats`"));
    assert!(with("accuracy equal-uplink").unwrap_err().contains("compares curves"));
}

#[test]
fn only_picks_by_the_name_of_panel_case_and_series_whatever_its_case() {
    let figure = parse(SMALL).unwrap();
    let count = |only| Grid::new(&figure, &wanted(Scale::Full, Some(only))).count();
    assert_eq!((count("rounds/"), count("Rounds/FedAvg"), count("sweep/2/"), count("nothing")), (3, 1, 3, 0));
    // The whole name of one run, which begins another's.
    let figure = parse(&SMALL.replace("id = \"svgd\"", "id = \"dsvgd-all\"")).unwrap();
    let count = |only| Grid::new(&figure, &wanted(Scale::Full, Some(only))).count();
    assert_eq!((count("rounds/dsvgd"), count("rounds/dsvgd-"), count("ounds/dsvgd")), (1, 1, 2));
}

#[test]
fn an_unknown_key_is_refused_by_its_name() {
    for (given, word) in [
        (SMALL.replace("paper =", "papre ="), "`papre`"),
        (SMALL.replace("log_x", "log_z") + "log_z = true\n", "`log_z`"),
        (SMALL.replace("name = \"DSVGD\"", "nmae = \"DSVGD\""), "`nmae`"),
        (SMALL.replace("full = [2, 4]", "ful = [2, 4]"), "`ful`"),
    ] {
        let message = parse(&given).unwrap_err();
        assert!(message.contains("figure p/fig1") && message.contains(word), "{message}");
    }
    // A wrong key of the config is reported by the rules of the config.
    let figure = parse(&SMALL.replace("rows = 400", "rosw = 400")).unwrap();
    let message = grid(&figure, Scale::Full).runs(&figure).unwrap_err().to_string();
    assert!(message.contains("unknown key `data.rosw`") && message.contains("`data.rows`"), "{message}");
}

#[test]
fn references_of_a_figure_must_exist() {
    let with = |more: &str| parse(&format!("{SMALL}{more}")).unwrap_err();
    let claim = |rest: &str| with(&format!("[[claim]]\nwhat = \"w\"\nsource = \"[X]\"\n{rest}"));
    assert!(claim("panel = \"nowhere\"\ngreater = [\"svgd\", \"dsvgd\"]").contains("no panel `nowhere`"));
    assert!(claim("panel = \"rounds\"\ngreater = [\"svgd\", \"sgd\"]").contains("no series `sgd`"));
    assert!(claim("panel = \"rounds\"\ngreater = [\"svgd\"]").contains("at least two"));
    assert!(claim("panel = \"rounds\"\nclose = [\"svgd\", \"dsvgd\"]").contains("`within`"));
    assert!(claim("panel = \"rounds\"\nat = \"lats\"\ngreater = [\"svgd\", \"dsvgd\"]").contains("`lats`"));
    let target = "[[target]]\nwhat = \"w\"\nsource = \"[X]\"\npanel = \"rounds\"\nseries = \"svgd\"\n";
    assert!(with(&format!("{target}metric = \"acuracy\"\nvalue = 1")).contains("did you mean `accuracy`"));
    assert!(with(target).contains("it takes `value`"));
    assert!(with("[[panel]]\nid = \"sweep\"\ntitle = \"twice\"\ny = \"nll\"").contains("`sweep` stands there twice"));
    assert!(with("[[panel]]\nid = \"a/b\"\ntitle = \"t\"\ny = \"nll\"").contains("`a/b` is not a name"));
    assert!(with("[[panel]]\nid = \"p\"\ntitle = \"t\"\nx = \"sweep\"\ny = \"nll\"").contains("go together"));
    assert!(parse("from = \"gone\"\ntitle = \"T\"\npaper = \"P\"").unwrap_err().contains("no figure `gone`"));
}

#[test]
fn an_entry_with_rows_and_panels_is_a_table_of_the_paper() {
    let kind = "what = \"w\"\nsource = \"[T]\"\n";
    let with = |more: &str| {
        parse(&format!("{SMALL}[[panel]]\nid = \"more\"\ntitle = \"M\"\ny = \"nll\"\n{}", more.replace("KIND", kind)))
    };
    let figure = with(
        "[[target]]\nKINDpanel = [\"rounds\", \"more\"]\ntolerance = 0.1\nrows = [\n\
         { series = \"fedavg\", value = [0.7, 1] },\n{ series = [\"dsvgd\", \"svgd\"], value = [0.8, 0.4] },\n]\n\
         [[target]]\nKINDpanel = \"sweep\"\nseries = [\"dsvgd\", \"svgd\"]\nvalue = { 4 = 0.9, 2 = 1 }\n\
         [[claim]]\nKINDpanel = [\"more\", \"rounds\"]\ngreater = [\"svgd\", \"dsvgd\"]\nnote = [\"one\", \"two\"]\n",
    )
    .unwrap();
    let name = |term: &Term| {
        let at = term.at.as_ref().map_or_else(String::new, |at| format!("@{at}"));
        format!("{}/{}{at}", figure.panels[term.panel].id, figure.series[term.series.unwrap()].id)
    };
    let targets: Vec<String> = figure
        .targets
        .iter()
        .map(|target| format!("{} {} {:?}", name(&target.term), target.metric, target.value))
        .collect();
    assert_eq!(
        targets,
        [
            "rounds/fedavg accuracy Near(0.7, Some(0.1))",
            "rounds/dsvgd accuracy Near(0.8, Some(0.1))",
            "rounds/svgd accuracy Near(0.8, Some(0.1))",
            "more/fedavg nll Near(1.0, Some(0.1))",
            "more/dsvgd nll Near(0.4, Some(0.1))",
            "more/svgd nll Near(0.4, Some(0.1))",
            "sweep/dsvgd@4 accuracy Near(0.9, None)",
            "sweep/svgd@4 accuracy Near(0.9, None)",
            "sweep/dsvgd@2 accuracy Near(1.0, None)",
            "sweep/svgd@2 accuracy Near(1.0, None)",
        ]
    );
    let claims: Vec<String> = figure
        .claims
        .iter()
        .map(|claim| {
            format!("{} > {} in {}: {}", name(&claim.terms[0]), name(&claim.terms[1]), claim.metric, claim.note)
        })
        .collect();
    assert_eq!(claims, ["more/svgd > more/dsvgd in nll: one", "rounds/svgd > rounds/dsvgd in accuracy: two"]);

    for (entry, word) in [
        (
            "[[target]]\nKINDpanel = [\"rounds\", \"more\"]\nseries = \"svgd\"\nvalue = [1, 2, 3]\n",
            "3 numbers for 2 panels",
        ),
        (
            "[[target]]\nKINDpanel = \"rounds\"\nseries = \"svgd\"\nrows = [{ series = \"svgd\", value = 1 }]\n",
            "or `rows`",
        ),
        ("[[target]]\nKINDpanel = \"rounds\"\nrows = [{ series = \"svgd\" }]\n", "it takes `value`"),
        ("[[target]]\nKINDpanel = \"rounds\"\n", "it takes `series`"),
        ("[[target]]\nKINDpanel = \"sweep\"\nseries = \"svgd\"\nvalue = { 2 = \"x\" }\n", "`value` cannot be \"x\""),
        ("[[target]]\nKINDpanel = \"sweep\"\nseries = \"svgd\"\nvalue = \"x\"\n", "a table with one for each point"),
        ("[[target]]\nKINDpanel = []\nseries = \"svgd\"\nvalue = 1\n", "`panel` is empty"),
        ("[[claim]]\nKINDpanel = []\ngreater = [\"svgd\", \"dsvgd\"]\n", "`panel` is empty"),
        (
            "[[claim]]\nKINDpanel = \"rounds\"\ngreater = [\"svgd\", \"dsvgd\"]\nnote = [\"a\", \"b\"]\n",
            "2 remarks for 1 panel",
        ),
    ] {
        let message = with(entry).unwrap_err();
        assert!(message.contains(word), "{message}");
    }
}

#[test]
fn a_figure_from_another_has_its_runs_and_its_own_panels() {
    let text =
        "from = \"small\"\ntitle = \"T\"\npaper = \"P\"\ny = \"nll\"\nshown = [\"svgd\"]\npanels = [\"rounds\"]\n";
    let figure = parse(text).unwrap();
    assert_eq!(figure.panels.len(), 1);
    assert_eq!((figure.panels[0].y.as_str(), figure.panels[0].series.as_slice()), ("nll", &[2][..]));
    assert_eq!(figure.seeds.full, 3);
    assert!(parse(&format!("{text}[base]\nrounds = 1\n")).unwrap_err().contains("takes its base"));
}
