//! Data sets through the public interface: reading, fetching, partitions, and the real files where they are present.

mod columnar;
mod csv;
mod fetch;
mod groups;
mod held_out;
mod left_out;
mod manual_download;
mod missing_values;
mod partitions;
mod real_data;
mod refused;
mod sets;
mod tables;
