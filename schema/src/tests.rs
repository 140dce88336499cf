//! Tests of layers, precedence and messages on a small schema.

use super::Accepts::{Bool, Choice, Float};
use super::Literal::{Float as F, Int as I, Text as T};
use super::*;

const STEPS: Key = key("steps", COUNT, I(10), "Steps.");

fn schema() -> Schema {
    const TOP: &[Key] = &[
        key("preset", Choice(&["sound", "paper", "reference"]), T("sound"), "Defaults."),
        key("backend", Choice(&["flex", "wgpu"]), T("flex"), "Where."),
        key("seed", whole(0, i64::MAX), I(1), "Randomness."),
    ];
    const PLAIN: Kind = Kind { name: "plain", about: "One.", keys: &[STEPS.paper(I(7))] };
    const NOISY: Kind = Kind {
        name: "noisy",
        about: "Other.",
        keys: &[
            STEPS.default(I(20)),
            key("noise", POSITIVE, F(0.5), "Sd."),
            required("path", Accepts::Name, "A name."),
            key("split", Choice(&["random", "half"]), T("random"), "Rows."),
        ],
    };
    const TABLE: Kind = Kind {
        name: "table",
        about: "Third.",
        keys: &[STEPS, key("split", Choice(&["random", "by-class"]), T("random"), "Rows of a table.")],
    };
    const OTHER: &[Key] =
        &[key("on", Bool, Literal::Bool(true), "Whether."), key("rate", Float(Interval::FRACTION), F(0.1), "ρ.")];
    Schema {
        sections: vec![
            Section::plain("", "Top.", TOP),
            Section::of_kinds("method", "How.", "plain", [PLAIN, NOISY, TABLE]),
            Section::plain("other", "Rest.", OTHER),
        ],
    }
}

fn resolve(text: &str, set: &[&str]) -> Result<Resolved, String> {
    let overrides = Overrides { set: set.iter().map(ToString::to_string).collect(), ..Overrides::default() };
    schema().resolve(Source { name: "e.toml", text }, &overrides).map_err(|error| error.to_string())
}

#[test]
fn defaults_are_those_of_the_kind_then_the_preset_then_the_file_then_the_command_line() {
    let steps = |text, set| resolve(text, set).unwrap().table["method"]["steps"].as_integer().unwrap();
    assert_eq!(steps("", &[]), 10);
    assert_eq!(steps("preset = \"paper\"", &[]), 7);
    assert_eq!(steps("[method]\nkind = \"noisy\"\npath = \"p\"", &[]), 20);
    assert_eq!(steps("preset = \"paper\"\n[method]\nsteps = 3", &[]), 3);
    assert_eq!(steps("[method]\nsteps = 3", &["method.steps=4", "method.steps=5"]), 5);
}

#[test]
fn a_resolved_config_resolves_to_itself() {
    let first = resolve("[method]\nkind = \"noisy\"\npath = \"p\"\nnoise = 2", &[]).unwrap();
    let text = first.to_toml();
    let again = resolve(&text, &[]).unwrap();
    assert_eq!((&again.table, &again.changed, &again.notes), (&first.table, &first.changed, &first.notes), "{text}");
    let given = |resolved: &Resolved| resolved.given.iter().map(|given| given.path.clone()).collect::<Vec<_>>();
    assert_eq!(given(&first), ["method.kind", "method.noise", "method.path"]);
    assert!(given(&again).contains(&"method.steps".to_owned()), "{:?}", again.given);
    assert!(text.contains("kind = \"noisy\"\nsteps = 20\nnoise = 2.0\npath = \"p\"\n"), "{text}");
}

#[test]
fn the_places_of_the_keys_that_a_message_names_are_those_of_the_first_two_that_are_given() {
    let text = "[method]\nkind = \"noisy\"\npath = \"p\"\nnoise = 2";
    let resolved = resolve(text, &["other.rate=0.5"]).unwrap();
    for (message, places) in [
        ("`method.noise` is 2; `method.path` must be long", "e.toml, lines 4 and 3"),
        ("method kind `noisy` has no `method.steps`, and `method.steps` is not given", "e.toml, line 2"),
        ("`method.noise` and again `method.noise`", "e.toml, line 4"),
        ("`other.rate` is 0.5, but method kind `noisy` needs 0; `method.path`", "--set and e.toml, line 2"),
        ("method.noise = 2: there are two", "e.toml, line 4"),
        ("x.csv: no column `p` (method.path); other.rate = 0.5", "e.toml, line 3"),
        // Another kind is a remedy, and a longer name another key.
        ("use method kind `plain`; `method.paths` is no key", "e.toml"),
    ] {
        let located = resolved.located(ConfigError::conflict(message), "e.toml");
        assert_eq!(located.to_string(), format!("{places}: {message}"));
    }
}

#[test]
fn cells_are_a_list_of_texts_or_those_of_each_column() {
    let check = |text: &str| {
        let value = format!("x = {text}").parse::<toml::Table>().unwrap().remove("x").unwrap();
        Accepts::Cells.check(&value).map(|value| value.to_string())
    };
    for (given, read) in [
        ("[999, -9.5, \"unknown\"]", "[\"999\", \"-9.5\", \"unknown\"]"),
        ("999", "[\"999\"]"),
        ("[]", "[]"),
        ("{ age = 999, \"dose mg\" = [\".\", -9] }", "{ age = [\"999\"], \"dose mg\" = [\".\", \"-9\"] }"),
    ] {
        assert_eq!(check(given).as_deref(), Ok(read), "{given}");
        assert_eq!(check(read).as_deref(), Ok(read), "{read}");
    }
    for given in ["true", "\"\"", "[\" \"]", "[[1]]", "nan", "{ age = { a = 1 } }", "2024-01-01"] {
        let message = check(given).unwrap_err();
        assert!(message.starts_with("a cell or a list of them, such as [999, \"unknown\"], or"), "{given}: {message}");
    }
}

#[test]
fn clients_are_a_list_of_texts() {
    let check = |text: &str| {
        let value = format!("x = {text}").parse::<toml::Table>().unwrap().remove("x").unwrap();
        Accepts::Clients.check(&value).map(|value| value.to_string())
    };
    for (given, read) in
        [("[\"north\", 3]", "[\"north\", \"3\"]"), ("\"north\"", "[\"north\"]"), ("7", "[\"7\"]"), ("[]", "[]")]
    {
        assert_eq!(check(given).as_deref(), Ok(read), "{given}");
    }
    for given in ["true", "\"\"", "[[1]]", "{ a = 1 }"] {
        let message = check(given).unwrap_err();
        assert_eq!(message, "a client's name, or a list of them, such as [\"north\", 3]", "{given}");
    }
}

#[test]
fn columns_are_a_list_of_texts_or_a_word() {
    let check = |text: &str| {
        let value = format!("x = {text}").parse::<toml::Table>().unwrap().remove("x").unwrap();
        Accepts::Columns { words: &["auto"] }.check(&value).map(|value| value.to_string())
    };
    for (given, read) in [
        ("[\"ward\", 3, -1]", "[\"ward\", \"3\", \"-1\"]"),
        ("\"ward\"", "[\"ward\"]"),
        ("7", "[\"7\"]"),
        ("[]", "[]"),
        ("\"auto\"", "\"auto\""),
        ("[\"auto\"]", "[\"auto\"]"),
    ] {
        assert_eq!(check(given).as_deref(), Ok(read), "{given}");
    }
    for given in ["1.5", "[true]", "\"\"", "[\"\"]", "2024-01-01"] {
        let message = check(given).unwrap_err();
        assert_eq!(
            message, "a column's name or number, or a list of them, such as [\"ward\", 3]; or `auto`",
            "{given}"
        );
    }
}

#[test]
fn messages_name_place_key_and_a_remedy() {
    for (text, expected) in [
        ("[method]\nsteps = 0", "e.toml, line 2: `method.steps` cannot be 0; it must be a whole number from 1"),
        ("[method]\nnoise = 1.0", "`method.noise` is not used by method kind `plain`; it belongs to `noisy`"),
        ("[method]\nkind = \"noisi\"", "it must be one of `plain`, `noisy`, `table`; did you mean `noisy`?"),
        ("[method]\nkind = \"noisy\"", "`method.path` is missing: [method] kind `noisy` needs it"),
        (
            "[method]\nstep = 1",
            "unknown key `method.step`; did you mean `method.steps`?; [method] takes `kind`, `steps`",
        ),
        ("[methods]\nsteps = 1", "unknown section [methods]; did you mean [method]?"),
        ("method = 1", "`method` is a section, not a key; write its keys one by one, such as `method.kind = …`"),
        ("[other]\nseed = 1", "`seed` stands at the top of the file"),
        ("steps = 1", "did you mean `method.steps`?"),
        ("a = [", "not valid TOML"),
        (
            "a = 1\nseed = 99999999999999999999",
            "e.toml, line 2, column 8: not valid TOML: a whole number is at most 9223372036854775807",
        ),
        ("seed = 9223372036854775808", "not valid TOML: a whole number is at most 9223372036854775807"),
        ("seed = 1\nseed = 2", "e.toml, line 2, column 1: not valid TOML: `seed` is there already, on a line above"),
        ("[method]\nsteps = 1\n[method]", "line 3, column 2: not valid TOML: `method` is there already"),
    ] {
        let message = resolve(text, &[]).unwrap_err();
        assert!(message.contains(expected), "{text}: {message}");
    }
    assert!(resolve("", &["method.steps"]).unwrap_err().contains("has no `=`"));
}

#[test]
fn an_override_of_the_kind_drops_the_files_keys_of_its_own_kind() {
    let text = "[method]\nkind = \"noisy\"\npath = \"p\"\nnoise = 2.0\nsteps = 4";
    let resolved = resolve(text, &["method.kind=plain"]).unwrap();
    assert_eq!(resolved.table["method"].to_string(), "{ kind = \"plain\", steps = 4 }");
    assert_eq!(
        resolved.notes,
        [
            "method.kind is now `plain`, which does not use the file's `method.path`, `method.noise`",
            "method.kind is now `plain`, and keeps the file's `method.steps` = 4 (by default 10)"
        ]
    );
    // No word where the default is the same, or the value is the default, or the command line says it.
    for (text, typed) in [("steps = 10", &[][..]), ("steps = 4", &["method.steps=5"])] {
        let text = format!("[method]\nkind = \"noisy\"\npath = \"p\"\n{text}");
        let notes = resolve(&text, &[&["method.kind=plain"], typed].concat()).unwrap().notes;
        assert_eq!(notes, ["method.kind is now `plain`, which does not use the file's `method.path`"]);
    }
}

#[test]
fn a_kind_from_outside_has_its_keys_like_any_other() {
    const OWN: Kind = Kind { name: "own", about: "Mine.", keys: &[STEPS, key("decay", POSITIVE, F(0.9), "γ.")] };
    let schema = schema().with_kind("method", OWN);
    let source = Source { name: "e.toml", text: "[method]\nkind = \"own\"" };
    let resolved = schema.resolve(source, &Overrides::default()).unwrap();
    assert_eq!(resolved.table["method"]["decay"].as_float(), Some(0.9));
}

#[test]
fn the_reference_names_each_key_once_with_its_kinds_and_defaults() {
    let reference = schema().reference();
    assert!(reference.contains("| `\"noisy\"` | Other. |"), "{reference}");
    assert!(reference.contains("| `steps` | a whole number from 1 to 1000000000 | `10`; `noisy`: `20`; preset `paper`, `7` for `plain` | Steps. |"), "{reference}");
    assert!(reference.contains("| `path` | a name of letters"), "{reference}");
    assert!(reference.contains("*required* | Only `noisy`. A name. |"), "{reference}");
}

#[test]
fn the_kinds_without_a_key_are_listed_where_they_are_the_shorter_list() {
    let kind = |name, keys| Kind { name, about: "One.", keys };
    let users = ["a", "b", "c", "d"].map(|name| kind(name, &[STEPS]));
    let reference = |others: &[&'static str]| {
        let kinds = users.into_iter().chain(others.iter().map(|name| kind(name, &[])));
        let section = Section::of_kinds("method", "How.", "a", kinds.collect::<Vec<_>>());
        Schema { sections: vec![section] }.reference()
    };
    assert!(reference(&["e"]).contains("| Not `e`. Steps. |"));
    assert!(reference(&["e", "f"]).contains("| Only `a`, `b`, `c`, `d`. Steps. |"));
}

#[test]
fn the_reference_has_a_preset_only_where_it_is_not_the_default_and_links_to_pages() {
    const SAME: Key = Key { paper: Some(Literal::Int(10)), doc: "How many: docs/data.md.", ..STEPS };
    const OTHER: Key = Key { paper: Some(Literal::Int(3)), ..SAME };
    let names = ["a", "b", "c", "d", "e"];
    let reference = |keys: [&'static [Key]; 5]| {
        let kinds = names.into_iter().zip(keys).map(|(name, keys)| Kind { name, about: "See docs/data.md.", keys });
        let section = Section::of_kinds("method", "How.", "a", kinds.collect::<Vec<_>>());
        Schema { sections: vec![section] }.reference()
    };
    let (same, other): (&[Key], &[Key]) = (&[SAME], &[OTHER]);
    let default = |text: String| {
        let line = text.lines().find(|line| line.starts_with("| `steps`")).unwrap();
        line.split(" | ").nth(2).unwrap().to_owned()
    };
    assert_eq!(default(reference([same; 5])), "`10`");
    assert_eq!(default(reference([other; 5])), "`10`; preset `paper`, `3`");
    assert_eq!(default(reference([other, other, other, other, same])), "`10`; preset `paper`, `3` but for `e`");
    assert_eq!(default(reference([other, same, same, same, other])), "`10`; preset `paper`, `3` for `a`, `e`");
    let text = reference([same; 5]);
    assert!(text.contains("| `\"a\"` | See [docs/data.md](data.md). |"), "{text}");
    assert!(text.contains("How many: [docs/data.md](data.md). |"), "{text}");
}

#[test]
fn a_word_is_suggested_for_a_typing_error_only() {
    let backends = ["flex", "ndarray", "wgpu", "cuda"];
    assert_eq!(nearest("gpu", backends), Some("wgpu"));
    assert_eq!(nearest("FLEX", backends), Some("flex"));
    assert_eq!(nearest("tpu-v5", backends), None);
    let overrides = Overrides { backend: Some("gpu".into()), ..Overrides::default() };
    let message = schema().check_overrides(&overrides).unwrap_err().to_string();
    assert!(message.contains("`flex`, `wgpu`; did you mean `wgpu`?"), "{message}");
}

#[test]
fn of_many_names_the_first_are_shown_and_the_others_counted() {
    let shown = |count: usize| first(2, (0..count).map(|at| at.to_string()));
    assert_eq!([0, 1, 2, 3, 5].map(shown), ["", "0", "0, 1", "0, 1 and 1 more", "0, 1 and 3 more"]);
}

#[test]
fn a_value_of_the_command_line_is_checked_as_the_files_kind_has_the_key() {
    let table = "[method]\nkind = \"table\"";
    let split = |set: &str| resolve(table, &[set]).map(|resolved| resolved.table["method"]["split"].clone());
    assert_eq!(split("method.split=by-class").unwrap().as_str(), Some("by-class"));
    let message = split("method.split=half").unwrap_err();
    assert!(message.contains("--set: `method.split` cannot be \"half\"") && message.contains("by-class"), "{message}");
    // A word of no kind is refused without a file, with the words of each kind.
    let overrides = Overrides { set: vec!["method.split=thirds".into()], ..Overrides::default() };
    let message = schema().check_overrides(&overrides).unwrap_err().to_string();
    assert!(message.contains("`noisy`: one of `random`, `half`; `table`: one of `random`, `by-class`"), "{message}");
    assert!(schema().check_overrides(&Overrides { set: vec!["method.split=half".into()], ..overrides }).is_ok());
}

#[test]
fn a_value_of_the_file_is_checked_as_the_kind_of_the_command_line_has_the_key() {
    let file = "[method]\nkind = \"noisy\"\npath = \"p\"\nsplit = \"half\"";
    let message = resolve(file, &["method.kind=table"]).unwrap_err();
    assert!(message.contains("e.toml, line 4") && message.contains("by-class"), "{message}");
}

#[test]
fn the_reference_has_the_values_of_each_kind() {
    let reference = schema().reference();
    let line = reference.lines().find(|line| line.contains("`split`")).unwrap();
    assert!(line.contains("`noisy`: `\"random\"`, `\"half\"`; `table`: `\"random\"`, `\"by-class\"`"), "{line}");
}

#[test]
fn a_whole_number_beyond_tomls_is_told_the_limit() {
    let message = resolve("", &["seed=18446744073709551615"]).unwrap_err();
    assert!(message.contains("at least 0 and at most 9223372036854775807"), "{message}");
}

#[test]
fn a_number_of_the_command_line_may_lack_a_digit_beside_its_point() {
    let noise = |set: &str| {
        let sets = ["method.kind=noisy", "method.path=p", set];
        resolve("", &sets).map(|resolved| resolved.table["method"]["noise"].as_float().unwrap())
    };
    for (given, read) in [
        ("method.noise=.2", 0.2),
        ("method.noise= +.2 ", 0.2),
        ("method.noise=2.", 2.0),
        ("method.noise=1.e-3", 0.001),
        ("method.noise=0.2", 0.2),
    ] {
        assert_eq!(noise(given), Ok(read), "{given}");
    }
    for (given, shown) in [
        // A number, and too small a one.
        ("method.noise=-.5", "`method.noise` cannot be -0.5;"),
        ("method.noise=infinity", "`method.noise` cannot be \"infinity\";"),
        ("method.noise=NaN", "`method.noise` cannot be \"NaN\";"),
        ("method.noise=1.e999", "`method.noise` cannot be \"1.e999\";"),
        ("method.noise=.", "`method.noise` cannot be \".\";"),
        ("method.noise=,2", "`method.noise` cannot be \",2\";"),
        // A key of whole numbers, or of words, takes none with a point.
        ("seed=3.", "`seed` cannot be \"3.\";"),
        ("method.split=.5", "`method.split` cannot be \".5\";"),
    ] {
        let message = noise(given).unwrap_err();
        assert!(message.contains(shown), "{given}: {message}");
    }
    // A text stays as it is written.
    let named = resolve("", &["method.kind=noisy", "method.path=2."]).unwrap();
    assert_eq!(named.table["method"]["path"].as_str(), Some("2."));
}

#[test]
fn a_number_or_a_word_may_lack_a_digit_too() {
    const KEYS: &[Key] = &[key("width", Accepts::NumberOr(Interval::POSITIVE, &["auto"]), T("auto"), "Width.")];
    let schema = Schema { sections: vec![Section::plain("", "Top.", KEYS)] };
    let width = |set: &str| {
        let overrides = Overrides { set: vec![set.to_owned()], ..Overrides::default() };
        schema.resolve(Source { name: "e.toml", text: "" }, &overrides).unwrap().table["width"].clone()
    };
    assert_eq!((width("width=.5").as_float(), width("width=auto").as_str()), (Some(0.5), Some("auto")));
}

#[test]
fn the_numbers_of_a_list_may_lack_a_digit_too() {
    const LIST: Accepts = Accepts::FloatList { each: Interval::POSITIVE, length: 1 };
    const KEYS: &[Key] = &[required("levels", LIST, "Levels.")];
    let schema = Schema { sections: vec![Section::plain("", "Top.", KEYS)] };
    let levels = |set: &str| {
        let overrides = Overrides { set: vec![set.to_owned()], ..Overrides::default() };
        let resolved = schema.resolve(Source { name: "e.toml", text: "" }, &overrides);
        resolved.map(|resolved| resolved.table["levels"].to_string()).map_err(|error| error.to_string())
    };
    assert_eq!(levels("levels=[.5, 2.,1]"), Ok("[0.5, 2.0, 1.0]".into()));
    for wrong in ["levels=[.5,x]", "levels=[.5,,1]", "levels=[[.5]]", "levels=[-.5]", "levels=.5,1"] {
        assert!(levels(wrong).unwrap_err().contains("`levels` cannot be"), "{wrong}");
    }
}

#[test]
fn several_keys_of_a_section_are_set_at_once() {
    let both = "method={ kind = \"noisy\", path = \"p\" }";
    let resolved = resolve("", &[both, "method={ noise = 2.5 }", "method={}"]).unwrap();
    let one_by_one = resolve("", &["method.kind=noisy", "method.path=p", "method.noise=2.5"]).unwrap();
    assert_eq!(resolved.table, one_by_one.table);
    for (given, shown) in [
        ("methods={}", "--set: unknown section [methods]; did you mean [method]?"),
        ("method={ step = 1 }", "--set: unknown key `method.step`; did you mean `method.steps`?"),
        ("method={ steps = { n = 1 } }", "--set: `method.steps` cannot be"),
        ("seed={ a = 1 }", "--set: `seed` cannot be"),
        ("method={ steps = 4", "--set: `method` cannot be \"{ steps = 4\"; it must be keys with values in TOML"),
    ] {
        let message = resolve("", &[given]).map(|_| ()).unwrap_err();
        assert!(message.contains(shown), "{given}: {message}");
    }
}
