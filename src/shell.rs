//! Command lines for messages, quoted so that a POSIX shell, or on Windows PowerShell and `cmd`, reads them as they are meant.

use std::path::{Path, PathBuf};

/// The command that goes on with a stopped run, over the sites of these files, if it has any.
pub fn resume(run: &Path, sites: &[PathBuf]) -> String {
    let run = path(run);
    let sites = sites.iter().map(|site| path(site)).collect::<Vec<_>>().join(",");
    let of_sites: &[&str] = if sites.is_empty() { &[] } else { &["--sites", &sites] };
    line(&[&["fedstein", "train", "--resume", &run], of_sites].concat())
}

/// A path as a word that is no option.
pub fn path(path: &Path) -> String {
    let text = path.display().to_string();
    if text.starts_with('-') { format!("./{text}") } else { text }
}

/// Words as a command line.
pub fn line(words: &[&str]) -> String {
    words.iter().map(|word| self::word(word)).collect::<Vec<_>>().join(" ")
}

/// A word, between quotes where a shell would read it otherwise.
fn word(text: &str) -> String {
    let plain = if cfg!(windows) { "-_./\\:=+" } else { "-_./,:=+@%" };
    let is_plain = |c: char| c.is_alphanumeric() || plain.contains(c);
    match !text.is_empty() && text.chars().all(is_plain) {
        true => text.to_owned(),
        // Both shells of Windows know these quotes. No name of a file has them, and strings of TOML may have the others.
        false if cfg!(windows) => format!("\"{}\"", text.replace('"', "'")),
        false => format!("'{}'", text.replace('\'', "'\\''")),
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn a_shell_reads_the_words_back() {
        let words = ["a-b_1.toml", "Süd Haus/site.toml", "it's", "$HOME", "a;b", "", "*", "x,y=1"];
        let script = format!("printf '%s\\n' {}", line(&words));
        let shell = std::process::Command::new("sh").args(["-c", &script]).output().unwrap();
        assert_eq!(String::from_utf8(shell.stdout).unwrap(), words.join("\n") + "\n");
        let sites = ["a.toml", "b c.toml"].map(PathBuf::from);
        assert_eq!(resume(Path::new("runs/a"), &[]), "fedstein train --resume runs/a");
        assert_eq!(resume(Path::new("-a"), &[]), "fedstein train --resume ./-a");
        assert_eq!(resume(Path::new("runs/a"), &sites), "fedstein train --resume runs/a --sites 'a.toml,b c.toml'");
    }
}

#[cfg(all(test, windows))]
mod tests {
    use super::*;

    #[test]
    fn both_shells_read_the_words_back() {
        let (run, sites) = (Path::new(r"runs\a"), [r"0\site.toml", r"St Mary\site.toml"].map(PathBuf::from));
        assert_eq!(resume(run, &[]), r"fedstein train --resume runs\a");
        let both = r#"fedstein train --resume runs\a --sites "0\site.toml,St Mary\site.toml""#;
        assert_eq!(resume(run, &sites), both);
        // PowerShell takes what stands between commas for a list.
        assert_eq!(line(&["a,b", r#"{ a = ["x", 9] }"#]), r#""a,b" "{ a = ['x', 9] }""#);
    }
}
