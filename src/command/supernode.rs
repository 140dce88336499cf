//! `fedstein supernode`: a site as a node of Flower's, over a SuperLink.

use std::fs;
use std::io;
use std::net::IpAddr;
use std::path::Path;
use std::process::exit;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;

use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;

use super::for_site::for_site;
use super::interrupt::INTERRUPTED;
use crate::cli::{CliError, Supernode, print_note};
use crate::flower::fleet::{Fleet, Security};
use crate::flower::keys::NodeKey;
use crate::flower::node::Node;

/// Runs the command until a signal ends it.
///
/// # Errors
/// A file, the site's rows or its backend is unusable, or the SuperLink cannot be reached or refuses the node.
pub(super) fn serve(typed: &Supernode) -> Result<(), CliError> {
    let in_file =
        |file: &Path, reason: &dyn std::fmt::Display| CliError::Usage(format!("{}: {reason}", file.display()));
    let read = |file: &Path| fs::read(file).map_err(|error| in_file(file, &error));
    let key = match &typed.key {
        Some(file) => {
            let text = String::from_utf8_lossy(&read(file)?).into_owned();
            NodeKey::of_openssh(&text).map_err(|reason| in_file(file, &reason))?
        }
        None => NodeKey::random().map_err(CliError::Failed)?,
    };
    let security = match &typed.roots {
        Some(file) => Security::Roots(read(file)?),
        None if typed.insecure => Security::None,
        None => Security::Public,
    };
    if typed.insecure && !is_this_machine(&typed.superlink) {
        print_note(&format!(
            "--insecure: what goes to {} and back is not encrypted; everybody on the way can read and change it. Use \
             --root-certificates where the SuperLink is on another machine",
            typed.superlink
        ));
    }
    let fleet = Fleet::new(&typed.superlink, security, key).map_err(|reason| match &typed.roots {
        Some(file) => in_file(file, &reason),
        None => CliError::Failed(reason),
    })?;
    for_site(&typed.site, |mut client, limits| {
        let (joining, registers) = (ends_at_once()?, typed.key.is_none());
        let node = Arc::new(Node::join(fleet, registers, limits).map_err(CliError::Failed)?);
        let (ends, watched) = (listen()?, node.clone());
        joining.store(false, Relaxed);
        // A visit that is cut off has changed nothing on the disk, so the process may end within one.
        let watch = move || {
            watched.keep_alive(&ends);
            exit(0);
        };
        thread::Builder::new().spawn(watch)?;
        let Err(reason) = node.work(|parcel| client.answer(parcel));
        node.leave();
        Err(CliError::Failed(reason))
    })
}

/// Until this flag is false a signal ends the process: there is nothing to leave yet.
fn ends_at_once() -> io::Result<Arc<AtomicBool>> {
    let joining = Arc::new(AtomicBool::new(true));
    for signal in [SIGINT, SIGTERM] {
        flag::register_conditional_shutdown(signal, 0, joining.clone())?;
    }
    Ok(joining)
}

/// Whether a host and port are those of this machine.
fn is_this_machine(address: &str) -> bool {
    let host = address.rsplit_once(':').map_or(address, |(host, _)| host);
    let host = host.trim_start_matches('[').trim_end_matches(']');
    host == "localhost" || host.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback())
}

/// From now on a first signal sets this flag; a second one ends the process.
fn listen() -> io::Result<Arc<AtomicBool>> {
    let ends = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        flag::register_conditional_shutdown(signal, INTERRUPTED, ends.clone())?;
        flag::register(signal, ends.clone())?;
    }
    Ok(ends)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_loopback_addresses_are_this_machine() {
        for address in ["127.0.0.1:9092", "localhost:9092", "[::1]:9092", "127.8.1.2:1"] {
            assert!(is_this_machine(address), "{address}");
        }
        for address in ["10.0.0.4:9092", "superlink:9092", "localhost.example.org:9092", "[2001:db8::1]:9092"] {
            assert!(!is_this_machine(address), "{address}");
        }
    }
}
