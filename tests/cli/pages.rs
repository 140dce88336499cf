//! `fedstein completions` and `fedstein man`: they know every command of the program.

use super::place::Place;

/// The commands that `fedstein --help` lists.
fn commands(place: &Place) -> Vec<String> {
    let help = place.works("--help").stdout;
    let lines = help.lines().skip_while(|line| *line != "Commands:").skip(1).take_while(|line| line.starts_with("  "));
    let names: Vec<String> = lines.filter_map(|line| line.split_whitespace().next()).map(str::to_owned).collect();
    assert!(names.len() > 8, "{help}");
    names
}

#[test]
fn every_shell_completes_every_command() {
    let place = Place::new();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let text = place.works(&format!("completions {shell}")).stdout;
        for command in commands(&place) {
            assert!(text.contains(&command), "{shell}: no {command}");
        }
        assert!(text.contains("resume"), "{shell} knows no options");
    }
    place.refuses("completions tcsh", &["tcsh", "bash"]);
}

#[cfg(unix)]
#[test]
fn bash_completes_a_command_and_its_options() {
    let place = Place::new();
    place.write("fedstein.bash", place.works("completions bash").stdout);
    let complete = |words: &str| {
        let count = words.split(' ').count();
        let script = format!(
            "source fedstein.bash; COMP_WORDS=({words}); COMP_CWORD={}; _fedstein fedstein {} {}; echo \"${{COMPREPLY[@]}}\"",
            count - 1,
            words.split(' ').next_back().unwrap(),
            words.split(' ').rev().nth(1).unwrap(),
        );
        let output =
            std::process::Command::new("bash").args(["-c", &script]).current_dir(place.path(".")).output().unwrap();
        assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    assert_eq!(complete("fedstein tr"), "train\n");
    assert_eq!(complete("fedstein train --res"), "--resume\n");
}

#[test]
fn the_manual_has_a_page_for_the_program_and_for_every_command() {
    let place = Place::new();
    let whole = place.works("man").stdout;
    assert!(whole.contains(".TH fedstein 1"), "{whole}");
    for command in commands(&place).iter().filter(|command| *command != "help") {
        assert!(whole.contains(&format!("fedstein\\-{command}(1)")), "{command}: {whole}");
        let page = place.works(&format!("man {command}")).stdout;
        assert!(page.contains(&format!(".TH fedstein-{command} 1")), "{command}: {page}");
    }
    assert!(place.works("man site check").stdout.contains("SITE.toml"));
    place.refuses("man trian", &["`fedstein` has no command `trian`; did you mean `train`?", "`report`"]);
    place.refuses("man train now", &["`fedstein train` has no commands of its own"]);
}

/// The targets of the links of a page, without anchors; none of other sites.
fn links(page: &str) -> Vec<&str> {
    let targets = page.split("](").skip(1).filter_map(|rest| rest.split([')', '#', ' ']).next());
    targets.filter(|target| !target.is_empty() && !target.contains("://")).collect()
}

#[test]
fn whatever_a_page_of_the_guide_links_to_is_in_the_guide() {
    let docs = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("docs").canonicalize().unwrap();
    let summary = std::fs::read_to_string(docs.join("SUMMARY.md")).unwrap();
    let pages: Vec<_> = links(&summary).into_iter().map(|page| docs.join(page)).collect();
    assert!(pages.len() > 40 && pages.contains(&docs.join("example.md")), "{pages:?}");
    for page in &pages {
        for target in links(&std::fs::read_to_string(page).unwrap()) {
            let found = page.parent().unwrap().join(target).canonicalize();
            let found = found.ok().filter(|found| found.is_file() && found.starts_with(&docs));
            let found = found.unwrap_or_else(|| panic!("{}: there is no {target} in the guide", page.display()));
            let is_page = found.extension().is_some_and(|extension| extension == "md");
            assert!(!is_page || pages.contains(&found), "{}: {target} is not in SUMMARY.md", page.display());
        }
    }
}
