//! The table of keys against itself.

use super::*;

fn kinds_of(section: &str) -> &'static [&'static str] {
    match KEYS.iter().find(|key| key.path == join(section, "kind")).map(|key| key.accepts) {
        Some(Accepts::Choice(kinds)) => kinds,
        None => &[""],
        other => panic!("{section}.kind accepts {other:?}"),
    }
}

#[test]
fn every_default_is_a_value_that_its_key_accepts() {
    for key in KEYS {
        for kind in kinds_of(key.section()) {
            for preset in ["sound", "paper", "reference"] {
                let Some(value) = key.default_for(kind, preset) else { continue };
                assert_eq!(key.accepts.check(&value).as_ref(), Ok(&value), "{} under {kind}, {preset}", key.path);
            }
        }
    }
}

#[test]
fn every_kind_that_a_key_names_exists() {
    for key in KEYS {
        let named = key.kinds.iter().chain(key.by_kind.iter().chain(key.reference_by_kind).map(|(kind, _)| kind));
        for kind in named {
            assert!(kinds_of(key.section()).contains(kind), "{}: {kind}", key.path);
        }
    }
}

#[test]
fn paths_are_unique_sections_exist_and_stand_together() {
    let mut order: Vec<&str> = KEYS.iter().map(Key::section).collect();
    order.dedup();
    let sections: Vec<&str> = SECTIONS.iter().map(|(name, _)| *name).collect();
    assert_eq!(order, sections);
    for (i, key) in KEYS.iter().enumerate() {
        assert!(KEYS[..i].iter().all(|other| other.path != key.path), "{} stands there twice", key.path);
    }
}

#[test]
fn only_a_kind_may_decide_about_a_section_so_it_has_no_kinds_itself() {
    for key in KEYS.iter().filter(|key| key.name() == "kind") {
        assert!(key.kinds.is_empty() && key.default.is_some(), "{}", key.path);
    }
}

#[test]
fn the_nearest_word_is_a_slip_away_or_there_is_none() {
    assert_eq!(nearest("gpu", BACKENDS.iter().copied()), Some("wgpu"));
    assert_eq!(nearest("FLEX", BACKENDS.iter().copied()), Some("flex"));
    assert_eq!(nearest("tpu-v5", BACKENDS.iter().copied()), None);
}

#[test]
fn a_backend_without_a_config_is_checked_like_one_in_a_config() {
    assert!(check_backend("wgpu").is_ok());
    let message = check_backend("gpu").unwrap_err().to_string();
    assert!(message.contains("`flex`, `ndarray`, `wgpu`, `cuda`; did you mean `wgpu`?"), "{message}");
}
