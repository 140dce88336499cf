//! The key of a node: an elliptic-curve key, with which it signs the time of each request (ECDSA with SHA-256).

use std::time::{SystemTime, UNIX_EPOCH};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use p256::ecdsa::signature::hazmat::PrehashSigner as _;
use p256::elliptic_curve::Generate as _;
use p256::pkcs8::{EncodePublicKey, LineEnding};
use sha2::{Digest, Sha256};

use crate::machine::timestamp_of;

/// The headers of a request: the node's public key, the time, and the signature of the time.
const PUBLIC_KEY: &str = "flwr-public-key";
const TIMESTAMP: &str = "flwr-timestamp";
const SIGNATURE: &str = "flwr-signature";

/// The first bytes of a private key of OpenSSH.
const MAGIC: &[u8] = b"openssh-key-v1\0";
const BEGIN: &str = "-----BEGIN OPENSSH PRIVATE KEY-----";
const END: &str = "-----END OPENSSH PRIVATE KEY-----";

/// The key of a node.
#[derive(Debug)]
pub(crate) struct NodeKey {
    secret: Secret,
    /// The public key as a PEM text.
    public: String,
}

#[derive(Debug)]
enum Secret {
    P256(p256::ecdsa::SigningKey),
    P384(p384::ecdsa::SigningKey),
}

impl NodeKey {
    /// A new key, of the curve that Flower takes for its own.
    ///
    /// # Errors
    /// This machine gives no random numbers.
    pub fn random() -> Result<Self, String> {
        let key = p384::ecdsa::SigningKey::try_generate();
        Self::of(Secret::P384(key.map_err(|error| format!("this machine gives no random numbers: {error}"))?))
    }

    /// The key of a file of OpenSSH, such as `ssh-keygen -t ecdsa -b 384 -N ''` writes.
    ///
    /// # Errors
    /// The text is no such key, the key has a passphrase, or it is of another curve than P-256 and P-384. The error is a
    /// sentence, without text of the file.
    pub fn of_openssh(text: &str) -> Result<Self, String> {
        let no_key =
            || "it is not a private key of OpenSSH, such as `ssh-keygen -t ecdsa -b 384 -N ''` writes".to_owned();
        let inner = text.trim().strip_prefix(BEGIN).and_then(|rest| rest.strip_suffix(END)).ok_or_else(no_key)?;
        let inner: String = inner.split_whitespace().collect();
        let bytes = STANDARD.decode(inner).map_err(|_| no_key())?;
        let mut fields = Fields(bytes.strip_prefix(MAGIC).ok_or_else(no_key)?);
        if fields.next() != Some(b"none") {
            return Err("the key has a passphrase, which neither this node nor Flower's own asks for".into());
        }
        let (kind, curve, secret) = private(fields).ok_or_else(no_key)?;
        let secret = match curve {
            b"nistp256" if kind == b"ecdsa-sha2-nistp256" => scalar::<32>(secret)
                .and_then(|bytes| p256::ecdsa::SigningKey::from_slice(&bytes).ok())
                .map(Secret::P256),
            b"nistp384" if kind == b"ecdsa-sha2-nistp384" => scalar::<48>(secret)
                .and_then(|bytes| p384::ecdsa::SigningKey::from_slice(&bytes).ok())
                .map(Secret::P384),
            _ => return Err("the key is not an ECDSA key of the curve P-256 or P-384".into()),
        };
        Self::of(secret.ok_or_else(no_key)?)
    }

    fn of(secret: Secret) -> Result<Self, String> {
        let public = match &secret {
            Secret::P256(key) => key.verifying_key().to_public_key_pem(LineEnding::LF),
            Secret::P384(key) => key.verifying_key().to_public_key_pem(LineEnding::LF),
        };
        Ok(Self { secret, public: public.map_err(|error| format!("the public key cannot be written: {error}"))? })
    }

    /// The public key as a PEM text.
    pub fn public(&self) -> &str {
        &self.public
    }

    /// The headers of a request that is sent at this time.
    ///
    /// # Errors
    /// The key cannot sign.
    pub fn headers(&self, now: SystemTime) -> Result<[(&'static str, String); 3], String> {
        let time = timestamp(now);
        let signature = self.sign(time.as_bytes())?;
        let public = STANDARD.encode(self.public.as_bytes());
        Ok([(PUBLIC_KEY, public), (TIMESTAMP, time), (SIGNATURE, STANDARD.encode(signature))])
    }

    /// The signature of a text, in DER.
    fn sign(&self, text: &[u8]) -> Result<Vec<u8>, String> {
        let hash = Sha256::digest(text);
        let signed = match &self.secret {
            Secret::P256(key) => {
                key.sign_prehash(&hash).map(|signature: p256::ecdsa::Signature| signature.to_der().as_bytes().to_vec())
            }
            Secret::P384(key) => {
                key.sign_prehash(&hash).map(|signature: p384::ecdsa::Signature| signature.to_der().as_bytes().to_vec())
            }
        };
        signed.map_err(|error| format!("the node's key cannot sign: {error}"))
    }
}

/// The fields of a key's file: each has its length before it.
struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    fn number(&mut self) -> Option<u32> {
        let (number, rest) = self.0.split_first_chunk::<4>()?;
        self.0 = rest;
        Some(u32::from_be_bytes(*number))
    }

    fn next(&mut self) -> Option<&'a [u8]> {
        let length = self.number()?;
        let (field, rest) = self.0.split_at_checked(usize::try_from(length).ok()?)?;
        self.0 = rest;
        Some(field)
    }
}

/// The kind, the curve and the secret number of a key, from the field after the name of its cipher.
fn private(mut fields: Fields<'_>) -> Option<(&[u8], &[u8], &[u8])> {
    let (_derivation, _options, count) = (fields.next()?, fields.next()?, fields.number()?);
    let _public = fields.next()?;
    let mut secret = Fields(fields.next()?);
    let (check, same) = (secret.number()?, secret.number()?);
    let (kind, curve) = (secret.next()?, secret.next()?);
    // A key of another kind has other fields.
    let _point = secret.next();
    let number = secret.next().unwrap_or_default();
    (count == 1 && check == same).then_some((kind, curve, number))
}

/// A number of any length, in N bytes.
fn scalar<const N: usize>(number: &[u8]) -> Option<[u8; N]> {
    let zeros = number.iter().take_while(|byte| **byte == 0).count();
    let number = &number[zeros..];
    let mut bytes = [0; N];
    bytes.get_mut(N.checked_sub(number.len())?..)?.copy_from_slice(number);
    Some(bytes)
}

/// A time in ISO 8601, in universal time.
fn timestamp(time: SystemTime) -> String {
    let micros = time.duration_since(UNIX_EPOCH).unwrap_or_default().subsec_micros();
    format!("{}.{micros:06}+00:00", timestamp_of(time).replace(' ', "T"))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use p256::ecdsa::signature::hazmat::PrehashVerifier as _;
    use p256::pkcs8::DecodePublicKey as _;

    use super::*;

    // Keys that the Python package cryptography made for this test, and their public keys as Flower's
    // `public_key_to_bytes` writes them.
    const P256: &str = "\
-----BEGIN OPENSSH PRIVATE KEY-----
b3BlbnNzaC1rZXktdjEAAAAABG5vbmUAAAAEbm9uZQAAAAAAAAABAAAAaAAAABNl
Y2RzYS1zaGEyLW5pc3RwMjU2AAAACG5pc3RwMjU2AAAAQQRJsv1p1zj67cuzj+1v
2e6I1oQw2P0O79DYp15cpPNflPzCJeX/UgagKGuQ2vUm20YGW3OobobOZcFol/gW
/3j/AAAAoItsI26LbCNuAAAAE2VjZHNhLXNoYTItbmlzdHAyNTYAAAAIbmlzdHAy
NTYAAABBBEmy/WnXOPrty7OP7W/Z7ojWhDDY/Q7v0NinXlyk81+U/MIl5f9SBqAo
a5Da9SbbRgZbc6huhs5lwWiX+Bb/eP8AAAAhAN+AhLYvQAYX5hboriH7kjPxVetL
FeiErE8HlFlP6fpmAAAAAAECAwQFBgc=
-----END OPENSSH PRIVATE KEY-----
";
    const P256_PUBLIC: &str = "\
-----BEGIN PUBLIC KEY-----
MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAESbL9adc4+u3Ls4/tb9nuiNaEMNj9
Du/Q2KdeXKTzX5T8wiXl/1IGoChrkNr1JttGBltzqG6GzmXBaJf4Fv94/w==
-----END PUBLIC KEY-----
";
    const P384: &str = "\
-----BEGIN OPENSSH PRIVATE KEY-----
b3BlbnNzaC1rZXktdjEAAAAABG5vbmUAAAAEbm9uZQAAAAAAAAABAAAAiAAAABNl
Y2RzYS1zaGEyLW5pc3RwMzg0AAAACG5pc3RwMzg0AAAAYQS9LMdzhyWPpW8cxGMh
38P0UYceof09jD9iq7Y9YhHcdr3mcJ/0rTW8HoicecpjYZhKED45eN1J0TM4f+o2
IMLjTg/FmawrXagrr9iaaKC+9FEffX5TrYUaC9V4MOStzqYAAADQkQ8FgpEPBYIA
AAATZWNkc2Etc2hhMi1uaXN0cDM4NAAAAAhuaXN0cDM4NAAAAGEEvSzHc4clj6Vv
HMRjId/D9FGHHqH9PYw/Yqu2PWIR3Ha95nCf9K01vB6InHnKY2GYShA+OXjdSdEz
OH/qNiDC404PxZmsK12oK6/YmmigvvRRH31+U62FGgvVeDDkrc6mAAAAMExQD05i
R5yjvRIMUgkim/PH6imYY8gAhtNUnEkhyCor3iBn1Pt7eTQUEwfCVK2keAAAAAAB
AgMEBQYHCA==
-----END OPENSSH PRIVATE KEY-----
";
    const P384_PUBLIC: &str = "\
-----BEGIN PUBLIC KEY-----
MHYwEAYHKoZIzj0CAQYFK4EEACIDYgAEvSzHc4clj6VvHMRjId/D9FGHHqH9PYw/
Yqu2PWIR3Ha95nCf9K01vB6InHnKY2GYShA+OXjdSdEzOH/qNiDC404PxZmsK12o
K6/YmmigvvRRH31+U62FGgvVeDDkrc6m
-----END PUBLIC KEY-----
";

    /// The key with other bytes.
    fn changed(text: &str, change: impl Fn(&mut Vec<u8>)) -> String {
        let inner: String = text.lines().filter(|line| !line.starts_with('-')).collect();
        let mut bytes = STANDARD.decode(inner).unwrap();
        change(&mut bytes);
        format!("{BEGIN}\n{}\n{END}\n", STANDARD.encode(bytes))
    }

    #[test]
    fn keys_of_openssh_are_read_with_their_public_keys() {
        assert_eq!(NodeKey::of_openssh(P256).unwrap().public(), P256_PUBLIC);
        assert_eq!(NodeKey::of_openssh(P384).unwrap().public(), P384_PUBLIC);
    }

    #[test]
    fn a_signature_is_that_of_the_sha256_by_the_public_key() {
        let (text, hash) = (b"2026-11-23T06:00:00+00:00", Sha256::digest(b"2026-11-23T06:00:00+00:00"));
        let der = NodeKey::of_openssh(P256).unwrap().sign(text).unwrap();
        let public = p256::ecdsa::VerifyingKey::from_public_key_pem(P256_PUBLIC).unwrap();
        public.verify_prehash(&hash, &p256::ecdsa::Signature::from_der(&der).unwrap()).unwrap();
        let key = NodeKey::random().unwrap();
        for key in [NodeKey::of_openssh(P384).unwrap(), key] {
            let der = key.sign(text).unwrap();
            let public = p384::ecdsa::VerifyingKey::from_public_key_pem(key.public()).unwrap();
            public.verify_prehash(&hash, &p384::ecdsa::Signature::from_der(&der).unwrap()).unwrap();
        }
    }

    #[test]
    fn what_is_no_key_for_a_node_is_refused_with_the_reason() {
        let with_passphrase = changed(P384, |bytes| bytes[19..23].copy_from_slice(b"aes2"));
        // The curve stands twice, in the public and in the private part.
        let other_curve = changed(P384, |bytes| {
            for at in 0..bytes.len() - 8 {
                if bytes[at..].starts_with(b"nistp384") {
                    bytes[at..at + 8].copy_from_slice(b"nistp521");
                }
            }
        });
        let zero = changed(P256, |bytes| {
            // After the number come the length of an empty comment and seven bytes of padding.
            let end = bytes.len() - 11;
            bytes[end - 32..end].fill(0);
        });
        for (text, word) in [
            ("", "not a private key of OpenSSH"),
            (P384_PUBLIC, "not a private key of OpenSSH"),
            (&P384[..P384.len() / 2], "not a private key of OpenSSH"),
            (&with_passphrase, "passphrase"),
            (&other_curve, "P-256 or P-384"),
            (&zero, "not a private key of OpenSSH"),
        ] {
            let error = NodeKey::of_openssh(text).unwrap_err();
            assert!(error.contains(word), "{error}, not {word}");
        }
        for length in 0..changed(P256, |_| ()).len() {
            let cut = changed(P256, |bytes| bytes.truncate(length));
            let _ = NodeKey::of_openssh(&cut);
        }
    }

    #[test]
    fn times_are_written_as_python_reads_them() {
        for (seconds, micros, text) in [
            (0, 0, "1970-01-01T00:00:00.000000+00:00"),
            (951_782_399, 5, "2000-02-28T23:59:59.000005+00:00"),
            (951_782_400, 0, "2000-02-29T00:00:00.000000+00:00"),
            (1_795_413_267, 250_000, "2026-11-23T05:54:27.250000+00:00"),
            (4_107_542_400, 0, "2100-03-01T00:00:00.000000+00:00"),
        ] {
            let time = UNIX_EPOCH + Duration::from_secs(seconds) + Duration::from_micros(micros);
            assert_eq!(timestamp(time), text);
        }
    }
}
