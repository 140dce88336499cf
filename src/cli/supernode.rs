//! `fedstein supernode`.

use std::path::PathBuf;

use clap::Args;

/// Take part in runs of a Flower SuperLink as a site, in the place of a SuperNode of Flower's.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  fedstein supernode --superlink lab.example:8000 --root-certificates ca.crt --site site.toml
  fedstein supernode --superlink 127.0.0.1:8000 --insecure --site site.toml

Nothing that a server sends is executed: the node answers fedstein's messages, and nothing else. docs/supernode.md")]
pub struct Supernode {
    /// The address of the SuperLink
    #[arg(long, value_name = "HOST:PORT", value_parser = address)]
    pub superlink: String,

    /// The site's own file
    #[arg(long, value_name = "SITE.toml")]
    pub site: PathBuf,

    /// Root certificates in PEM form, to check the SuperLink with [default: those that are generally trusted]
    #[arg(long = "root-certificates", value_name = "FILE")]
    pub roots: Option<PathBuf>,

    /// Connect without TLS: whoever is on the way can read and change everything
    #[arg(long, conflicts_with_all = ["roots", "key"])]
    pub insecure: bool,

    /// The node's private key, of OpenSSH and without a passphrase, whose public key the SuperLink knows [default: a new one]
    #[arg(long = "auth-supernode-private-key", value_name = "FILE")]
    pub key: Option<PathBuf>,
}

fn address(word: &str) -> Result<String, String> {
    match word.rsplit_once(':') {
        Some((host, port)) if !host.is_empty() && !host.contains('/') && port.parse::<u16>().is_ok() => {
            Ok(word.to_owned())
        }
        _ => Err("must be a host and a port, such as 127.0.0.1:8000".into()),
    }
}
