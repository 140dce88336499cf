//! A SuperLink on the loopback interface. It answers as a test says, and keeps the calls.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

use crate::flower::wire::Message;

/// A status and the bytes of an answer; `None` where the connection ends without one.
pub(super) type Said = Option<(u16, Vec<u8>)>;

/// The names of the calls with their requests.
type Calls = Arc<Mutex<Vec<(String, Vec<u8>)>>>;

/// Status 200 with this message.
pub(super) fn said(message: &impl Message) -> Said {
    Some((200, message.encoded()))
}

/// A SuperLink. Its thread ends with the process.
pub(super) struct SuperLink {
    pub address: String,
    calls: Calls,
}

impl SuperLink {
    /// A SuperLink that `says` this to a call, of which it is told the name and the request.
    pub fn that(mut says: impl FnMut(&str, &[u8]) -> Said + Send + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let calls = Calls::default();
        let seen = calls.clone();
        thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let _ = answer(stream, &mut says, &seen);
            }
        });
        Self { address, calls }
    }

    /// The names of the calls so far.
    pub fn names(&self) -> Vec<String> {
        self.calls.lock().unwrap().iter().map(|(name, _)| name.clone()).collect()
    }

    /// The requests of the calls of this name.
    pub fn requests<M: Message>(&self, name: &str) -> Vec<M> {
        let calls = self.calls.lock().unwrap();
        calls.iter().filter(|(called, _)| called == name).map(|(_, request)| M::decoded(request).unwrap()).collect()
    }
}

/// Reads a call, keeps it and answers it.
fn answer(mut stream: TcpStream, says: &mut impl FnMut(&str, &[u8]) -> Said, calls: &Calls) -> io::Result<()> {
    let mut reader = BufReader::new(stream.try_clone()?);
    let mut line = String::new();
    reader.read_line(&mut line)?;
    let name = line.split(' ').nth(1).and_then(|path| path.rsplit('/').next()).unwrap_or_default().to_owned();
    let mut length = 0;
    loop {
        line.clear();
        reader.read_line(&mut line)?;
        if line.trim_end().is_empty() {
            break;
        }
        if let Some(value) = line.to_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().unwrap();
        }
    }
    let mut request = vec![0_u8; length];
    reader.read_exact(&mut request)?;
    calls.lock().unwrap().push((name.clone(), request.clone()));
    let Some((status, body)) = says(&name, &request) else { return Ok(()) };
    let head = format!("HTTP/1.1 {status} Said\r\nContent-Length: {}\r\nConnection: close\r\n\r\n", body.len());
    stream.write_all(&[head.as_bytes(), &body].concat())
}
