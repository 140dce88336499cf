//! Command lines for messages, quoted so that a POSIX shell reads them as they are meant.

use std::path::{Path, PathBuf};

/// The command that goes on with a stopped run, over the sites of these files, if it has any.
pub fn resume(run: &Path, sites: &[PathBuf]) -> String {
    let run = run.display().to_string();
    let sites = sites.iter().map(|site| site.display().to_string()).collect::<Vec<_>>().join(",");
    let of_sites: &[&str] = if sites.is_empty() { &[] } else { &["--sites", &sites] };
    line(&[&["fedstein", "train", "--resume", &run], of_sites].concat())
}

/// Words as a command line.
pub fn line(words: &[&str]) -> String {
    words.iter().map(|word| self::word(word)).collect::<Vec<_>>().join(" ")
}

/// A word, between single quotes where a shell would read it otherwise.
fn word(text: &str) -> String {
    let is_plain = |c: char| c.is_alphanumeric() || "-_./,:=+@%".contains(c);
    match !text.is_empty() && text.chars().all(is_plain) {
        true => text.to_owned(),
        false => format!("'{}'", text.replace('\'', "'\\''")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg(unix)]
    fn a_shell_reads_the_words_back() {
        let words = ["a-b_1.toml", "Süd Haus/site.toml", "it's", "$HOME", "a;b", "", "*", "x,y=1"];
        let script = format!("printf '%s\\n' {}", line(&words));
        let shell = std::process::Command::new("sh").args(["-c", &script]).output().unwrap();
        assert_eq!(String::from_utf8(shell.stdout).unwrap(), words.join("\n") + "\n");
        let sites = ["a.toml", "b c.toml"].map(PathBuf::from);
        assert_eq!(resume(Path::new("runs/a"), &[]), "fedstein train --resume runs/a");
        assert_eq!(resume(Path::new("runs/a"), &sites), "fedstein train --resume runs/a --sites 'a.toml,b c.toml'");
    }
}
