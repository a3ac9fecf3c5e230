// Makes the files beside it, by the Parquet writer of Apache Arrow for Rust. In a folder of its own:
//   npm install parquet-wasm@0.8 apache-arrow@21; cp .../make_parquet.mjs .; node make_parquet.mjs FOLDER
import {writeFileSync} from "node:fs";
import {Bool, Field, Int32, List, Schema, Struct, Table, Utf8, tableToIPC, vectorFromArray} from "apache-arrow";
import * as parquet from "parquet-wasm/node";

const folder = process.argv[2];
const {Compression, Encoding, WriterVersion} = parquet;

// Row i: short, long, empty, repeated and not ASCII.
const text = i => (i % 11 == 0 ? "" : `row ${i % 3 == 0 ? i % 9 : i} ` + "caf\u00e9 \u65e5\u672c ".repeat(i % 5));
const count = 120;
const rows = [...Array(count).keys()];

function write(name, columns, change) {
  const fields = columns.map(([key, type, , nullable]) => new Field(key, type, nullable));
  const vectors = Object.fromEntries(columns.map(([key, type, values]) => [key, vectorFromArray(values, type)]));
  const table = new Table(new Schema(fields), vectors);
  const wasm = parquet.Table.fromIPCStream(tableToIPC(table, "stream"));
  const builder = new parquet.WriterPropertiesBuilder().setMaxRowGroupSize(50).setWriteBatchSize(10).setDataPageSizeLimit(200);
  writeFileSync(`${folder}/${name}.parquet`, parquet.writeParquet(wasm, change(builder).build()));
}

const texts = nullable => [["id", new Int32(), rows, false], ["text", new Utf8(), rows.map(text), nullable]];
const encodings = {plain: Encoding.PLAIN, lengths: Encoding.DELTA_LENGTH_BYTE_ARRAY, shared: Encoding.DELTA_BYTE_ARRAY};
const versions = {v1: WriterVersion.V1, v2: WriterVersion.V2};
const codecs = {
  none: Compression.UNCOMPRESSED, snappy: Compression.SNAPPY, gzip: Compression.GZIP, zstd: Compression.ZSTD,
  brotli: Compression.BROTLI, lz4: Compression.LZ4_RAW
};
function one(version, encoding, codec, nullable) {
  write(`${version}_${encoding}_${codec}_${nullable ? "optional" : "required"}`, texts(nullable), builder => {
    builder = builder.setWriterVersion(versions[version]).setCompression(codecs[codec]);
    return encoding == "dictionary" ? builder.setDictionaryEnabled(true)
                                    : builder.setDictionaryEnabled(false).setColumnEncoding("text", encodings[encoding]);
  });
}
one("v1", "plain", "none", false);
one("v1", "plain", "gzip", true);
one("v1", "dictionary", "snappy", true);
one("v1", "lengths", "zstd", false);
one("v2", "plain", "snappy", false);
one("v2", "dictionary", "zstd", false);
one("v2", "dictionary", "none", true);
one("v2", "lengths", "gzip", true);
one("v2", "shared", "none", false);
one("v2", "shared", "snappy", true);
one("v1", "plain", "brotli", false);
one("v2", "plain", "lz4", false);

const same = builder => builder;
write("nulls", [["text", new Utf8(), rows.map(i => (i == 70 ? null : text(i))), true]], same);
const inside = new Struct([new Field("text", new Utf8(), true), new Field("kept", new Bool(), true)]);
const words = new List(new Field("item", new Utf8(), true));
write("nested", [
  ["words", words, rows.map(i => ["a", `${i}`]), true],
  ["meta", inside, rows.map(i => ({text: text(i), kept: true})), true],
  ["body", new Utf8(), rows.map(i => `body ${i}`), true]
], same);
