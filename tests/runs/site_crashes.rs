//! A site whose process ends at any file operation of a visit: started again, it gives the same replies.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use fedstein::datasets::Task;
use fedstein::experiment::at_site::SiteClient;
use fedstein::protocol::Ask;
use fedstein::remote::{Content, Parcel, open};
use fedstein::site::{SiteConfig, SiteRows};
use tempfile::TempDir;

use crate::faults::harness::K;
use crate::sites::{configs, federation_of, sites};

/// The files below a directory, by their paths relative to it.
type Files = BTreeMap<PathBuf, Vec<u8>>;

fn files(dir: &Path) -> Files {
    let mut found = Files::new();
    let mut open = vec![dir.to_path_buf()];
    while let Some(here) = open.pop() {
        for entry in fs::read_dir(&here).into_iter().flatten() {
            let path = entry.unwrap().path();
            match path.is_dir() {
                true => open.push(path),
                false => drop(found.insert(path.strip_prefix(dir).unwrap().to_owned(), fs::read(&path).unwrap())),
            }
        }
    }
    found
}

fn lay_out(dir: &Path, files: &Files) {
    for (name, bytes) in files {
        let path = dir.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    }
}

/// A request to train, with the files of the site before it and after it.
struct Visit {
    request: Parcel,
    reply: Parcel,
    before: Files,
    after: Files,
}

/// The visits of client 0 in a federation.
fn visits(kind: &str) -> (TempDir, SiteConfig, Vec<Visit>) {
    let dir = TempDir::new().unwrap();
    let sites = sites(dir.path(), Task::Classification);
    let seen: Arc<Mutex<Vec<(Parcel, Parcel, Files)>>> = Arc::default();
    let (kept, state) = (seen.clone(), sites[0].state.clone());
    // The address of client 0 is the last one.
    let keep = move |peer: usize, parcel: Parcel, answer: Parcel| {
        if peer == K - 1 {
            kept.lock().unwrap().push((parcel, answer.clone(), files(&state)));
        }
        answer
    };
    federation_of(&configs(kind, "", Task::Classification)[1], &sites, Arc::new(keep)).unwrap();
    let seen = std::mem::take(&mut *seen.lock().unwrap());
    let is_visit = |parcel: &Parcel| matches!(open(parcel.clone()).unwrap().content, Content::Request(head) if head.ask == Ask::Train);
    let visits = seen.array_windows().filter(|[_, (request, ..)]| is_visit(request));
    let visits = visits.map(|[(.., before), (request, reply, after)]| Visit {
        request: request.clone(),
        reply: reply.clone(),
        before: before.clone(),
        after: after.clone(),
    });
    (dir, sites[0].clone(), visits.collect())
}

/// The states in which a process that ends during a visit may leave the disk: any of the new files but for the manifest,
/// which is the commit, is there or not or has a part under a temporary name; or all of them, and any of the files that the
/// visit removes is still there.
fn crashes(visit: &Visit) -> Vec<Files> {
    let Visit { before, after, .. } = visit;
    let is_manifest = |name: &Path| name.extension().is_some_and(|extension| extension == "json");
    let new: Vec<&PathBuf> = after.keys().filter(|name| before.get(*name) != after.get(*name)).collect();
    let (commit, new): (Vec<_>, Vec<_>) = new.into_iter().partition(|name| is_manifest(name));
    assert_eq!(commit.len(), 1, "a visit is committed by one file: {commit:?}");
    let removed: Vec<&PathBuf> = before.keys().filter(|name| !after.contains_key(*name)).collect();
    let subsets = |names: &[&PathBuf]| 0u32..1 << names.len();
    let mut states = Vec::new();
    for subset in subsets(&new) {
        let mut state = before.clone();
        for (place, name) in new.iter().enumerate() {
            let bytes = &after[*name];
            if subset >> place & 1 == 1 {
                state.insert((*name).clone(), bytes.clone());
            } else {
                let hidden = format!(".{}.77-0.tmp", name.file_name().unwrap().display());
                state.insert(name.with_file_name(hidden), bytes[..bytes.len() / 2].to_vec());
            }
        }
        states.push(state);
    }
    for subset in subsets(&removed) {
        let mut state = after.clone();
        for (place, name) in removed.iter().enumerate() {
            if subset >> place & 1 == 1 {
                state.insert((*name).clone(), before[*name].clone());
            }
        }
        states.push(state);
    }
    states
}

#[test]
fn a_process_that_ends_at_any_file_operation_of_a_visit_leaves_the_same_replies() {
    // The clients of the first keep a state between visits, those of the second keep none.
    for kind in ["p-dsvgd", "scaffold", "newton-dsvgd"] {
        let (_dir, site, visits) = visits(kind);
        assert!(visits.len() >= 2, "{kind}: {} visits", visits.len());
        let rows = SiteRows::read(&site).unwrap();
        let mut tried = 0;
        for pair in visits.array_windows() {
            let [visit, next]: &[Visit; 2] = pair;
            for state in crashes(visit) {
                let place = TempDir::new().unwrap();
                lay_out(place.path(), &state);
                let again = SiteConfig { state: place.path().to_owned(), ..site.clone() };
                let answer =
                    |parcel: &Parcel| SiteClient::new(again.clone(), rows.clone()).unwrap().answer(parcel.clone());
                assert!(answer(&visit.request) == visit.reply, "{kind}: another reply after a crash");
                assert!(answer(&next.request) == next.reply, "{kind}: another reply after the visit");
                tried += 1;
            }
        }
        // A state and a reply, or a reply alone; and files of earlier visits.
        assert!(tried >= 4 * (visits.len() - 1), "{kind}: only {tried} crashes");
    }
}
