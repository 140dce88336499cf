//! Clients of this process beyond a memory budget (`federation.memory_mib`): their states are files, and their halves are
//! built again when they are asked.
//!
//! A half that is built from the run's configuration and restored from its state has the bits of one that stayed in memory,
//! as after a checkpoint.

use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::visit::Client;
use crate::checkpoint::{CheckpointError, State, codec};
use crate::error::RunError;
use crate::protocol::{ClientHalf, ClientId};
use crate::report::files::create_private;

/// The bytes of a client in memory besides its state.
const OVERHEAD: u64 = 4096;

/// Builds the half of a client as it was before its first visit.
type Build<'a> = Box<dyn Fn(ClientId) -> Result<Box<dyn ClientHalf>, RunError> + Send + Sync + 'a>;

/// How clients are built, how much memory their states may take between rounds, and the directory of the others.
pub struct Parking<'a> {
    build: Build<'a>,
    dir: PathBuf,
    budget: u64,
    used: Mutex<Used>,
}

/// The clients in memory, by when they were asked last.
#[derive(Debug, Default)]
struct Used {
    /// Client and bytes of each question that was the last to its client, by the number of the question.
    order: BTreeMap<u64, (ClientId, u64)>,
    /// The number of the last question to each client.
    last: HashMap<ClientId, u64>,
    /// The number of the next question.
    next: u64,
    bytes: u64,
}

impl<'a> Parking<'a> {
    /// A parking in a directory that it creates and removes again.
    ///
    /// # Arguments
    /// * `build`: builds the half of a client as it was before its first visit
    /// * `dir`: the directory, in which nothing else lies
    /// * `budget`: the bytes that the states of all clients in memory may take between rounds
    ///
    /// # Errors
    /// The directory cannot be created, or what an earlier process has left in it cannot be removed.
    pub fn new(
        build: impl Fn(ClientId) -> Result<Box<dyn ClientHalf>, RunError> + Send + Sync + 'a,
        dir: PathBuf,
        budget: u64,
    ) -> Result<Self, RunError> {
        if dir.exists() {
            fs::remove_dir_all(&dir).map_err(CheckpointError::io("remove", &dir))?;
        }
        create_private(&dir).map_err(CheckpointError::io("create", &dir))?;
        Ok(Self { build: Box::new(build), dir, budget, used: Mutex::default() })
    }

    /// Notes that a client in memory was asked, and how many bytes it keeps.
    pub fn note(&self, client: ClientId, bytes: u64) {
        self.used().add(client, bytes + OVERHEAD);
    }

    /// Counts a client in memory that does not count at present, because its visit was open when its turn came.
    pub fn note_again(&self, client: ClientId, bytes: u64) {
        let mut used = self.used();
        if !used.last.contains_key(&client) {
            used.add(client, bytes + OVERHEAD);
        }
    }

    /// The client that was asked longest ago, with the number of that question, among those that were asked from the
    /// question `from` on; `None` where all together fit the budget.
    pub fn excess(&self, from: u64) -> Option<(u64, ClientId)> {
        let used = self.used();
        if used.bytes <= self.budget {
            return None;
        }
        used.order.range(from..).next().map(|(question, (client, _))| (*question, *client))
    }

    /// A client no longer counts: it is not in memory any more, or its visit is open.
    pub fn forget(&self, client: ClientId) {
        let mut used = self.used();
        if let Some((_, bytes)) = used.last.remove(&client).and_then(|last| used.order.remove(&last)) {
            used.bytes -= bytes;
        }
    }

    fn used(&self) -> MutexGuard<'_, Used> {
        self.used.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether this is the name of the file with a client's state.
    pub fn is_state(name: &str) -> bool {
        name.strip_suffix(".safetensors").is_some_and(|client| client.parse::<ClientId>().is_ok())
    }

    fn path(&self, client: ClientId) -> PathBuf {
        self.dir.join(format!("{client}.safetensors"))
    }

    fn write(&self, client: ClientId, state: &State) -> Result<(), RunError> {
        let path = self.path(client);
        Ok(fs::write(&path, codec::encode(state)?).map_err(CheckpointError::io("write", &path))?)
    }

    fn read(&self, client: ClientId) -> Result<State, RunError> {
        let path = self.path(client);
        let bytes = fs::read(&path).map_err(CheckpointError::io("read", &path))?;
        let wrong = |reason| CheckpointError::Content(format!("`{}`: {reason}", path.display()));
        Ok(codec::decode(&bytes).map_err(wrong)?)
    }
}

impl Drop for Parking<'_> {
    fn drop(&mut self) {
        // What is left after a process that was killed is removed by the next one.
        let _ = fs::remove_dir_all(&self.dir);
    }
}

impl Used {
    /// Puts a client behind all others.
    fn add(&mut self, client: ClientId, bytes: u64) {
        if let Some((_, before)) = self.last.insert(client, self.next).and_then(|last| self.order.remove(&last)) {
            self.bytes -= before;
        }
        self.order.insert(self.next, (client, bytes));
        self.bytes += bytes;
        self.next += 1;
    }
}

/// A client, in memory or not.
#[derive(Default)]
pub(super) struct Slot {
    client: Option<Client>,
    /// Whether its state is a file.
    is_stored: bool,
}

impl Slot {
    /// A client in memory.
    pub fn here(half: Box<dyn ClientHalf>) -> Self {
        Self { client: Some(Client::new(half)), is_stored: false }
    }

    /// The client, which is built where it is not in memory.
    ///
    /// # Errors
    /// It cannot be built, or its state cannot be read.
    pub fn client(&mut self, id: ClientId, parking: Option<&Parking<'_>>) -> Result<&mut Client, RunError> {
        if self.client.is_none() {
            let parking = parking.ok_or(RunError::NoClient(id))?;
            let mut client = Client::new((parking.build)(id)?);
            if self.is_stored {
                client.restore(&parking.read(id)?)?;
            }
            self.client = Some(client);
        }
        self.client.as_mut().ok_or(RunError::NoClient(id))
    }

    /// Moves the client to the disk, unless it has an open visit or is not in memory.
    ///
    /// # Errors
    /// The state cannot be read from the device or written. The client is then still in memory.
    pub fn park(&mut self, id: ClientId, parking: &Parking<'_>) -> Result<(), RunError> {
        let Some(client) = self.client.as_ref().filter(|client| !client.is_visited()) else { return Ok(()) };
        // A client that has not trained since it was built or read is as its file, or as one that is built anew.
        if client.has_changed() {
            parking.write(id, &client.save()?)?;
            self.is_stored = true;
        }
        self.client = None;
        Ok(())
    }

    /// Closes the visit of a round; see [`Client::settle`].
    pub fn settle(&mut self, round: usize, counts: bool) {
        if let Some(client) = &mut self.client {
            let _ = client.settle(round, counts);
        }
    }

    /// The state of the client between rounds.
    ///
    /// # Errors
    /// It cannot be read from the device or the disk.
    pub fn save(&mut self, id: ClientId, parking: Option<&Parking<'_>>) -> Result<State, RunError> {
        match (&self.client, parking) {
            (None, Some(parking)) if self.is_stored => parking.read(id),
            _ => self.client(id, parking)?.save(),
        }
    }

    /// Restores a state of [`Self::save`].
    ///
    /// # Errors
    /// The state does not belong to this client, or cannot be written.
    pub fn restore(&mut self, id: ClientId, state: &State, parking: Option<&Parking<'_>>) -> Result<(), RunError> {
        let Some(parking) = parking else { return self.client(id, None)?.restore(state) };
        parking.write(id, state)?;
        (self.client, self.is_stored) = (None, true);
        Ok(())
    }

    /// The bytes that the client keeps in memory between rounds; `None` where it is not in memory.
    pub fn bytes(&self) -> Option<u64> {
        Some(self.client.as_ref()?.state_bytes())
    }
}
