import { create, toJson } from '@bufbuild/protobuf';
import { expect } from 'chai';
import { setImmediate } from 'node:timers/promises';
import {
  bytesOf,
  entriesAsJson,
  entryInfo,
} from '../../../src/http/e2b/services/files/entry-info.ts';
import { ListDirResponseSchema } from '../../../src/http/e2b/services/generated/filesystem.ts';

describe('a list of ten thousand files', () => {
  const stat = { kind: 'file', mode: 0o644, size: 7, uid: 1_000, gid: 0, mtimeNs: 1_700n } as const;
  const entries = Array.from({ length: 10_000 }, (_, n) =>
    entryInfo(`/tmp/a "folder"/\u00e9\u{1f600}\ud800${n}`, { ...stat } as never),
  );

  it("equals the codec's output, and yields to other requests", async () => {
    let turns = 0;
    let isOver = false;
    const others = (async () => {
      for (; !isOver; turns += 1) await setImmediate();
    })();
    const pieces: Buffer[] = [];
    for await (const piece of entriesAsJson(entries)) pieces.push(piece);
    isOver = true;
    await others;

    const text = Buffer.concat(pieces).toString();
    const said: unknown = JSON.parse(text);
    expect(said).to.deep.equal(
      toJson(ListDirResponseSchema, create(ListDirResponseSchema, { entries })),
    );
    expect(turns).to.be.greaterThan(1);
    expect(Buffer.byteLength(text)).to.be.at.most(await bytesOf(entries));
  });
});
