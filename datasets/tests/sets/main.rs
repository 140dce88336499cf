//! Data sets as a caller meets them: read, fetched, split among clients; the real files where they are at hand.

mod by_hand;
mod csv;
mod fetch;
mod partitions;
mod real_data;
mod sets;
