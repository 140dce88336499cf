//! Data sets through the public interface: reading, fetching, partitions, and the real files where they are present.

mod by_hand;
mod csv;
mod fetch;
mod partitions;
mod real_data;
mod sets;
