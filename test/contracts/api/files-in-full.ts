import { expect } from 'chai';
import type { HttpAnswer } from '../../support/harness/http-client.ts';

/** Sends a line, and fails unless it is answered with `good`, or with 501 where there are no files. */
type Does = (
  line: string,
  request: { readonly body?: object; readonly good: number },
) => Promise<HttpAnswer>;

const FILE = ['path', 'kind', 'size', 'mode', 'uid', 'gid', 'modifiedAt'];

/** Carries out every operation of files at `path`, which say 501 where `provided` is false. */
export const filesInFull = async (provided: boolean, path: string, does: Does): Promise<void> => {
  const folder = '/tmp/in-full';
  const made = await does(`POST ${path}/mkdir`, { body: { path: folder }, good: 201 });
  const written = await does(`PUT ${path}?path=${folder}/one`, { body: { a: 1 }, good: 201 });
  const read = await does(`GET ${path}?path=${folder}/one`, { good: 200 });
  const listed = await does(`GET ${path}/list?path=${folder}`, { good: 200 });
  const moved = await does(`POST ${path}/move`, {
    body: { from: `${folder}/one`, to: `${folder}/two` },
    good: 200,
  });
  await does(`GET ${path}/watch?path=${folder}`, { good: 200 });
  const removed = await does(`DELETE ${path}?path=${folder}&recursive=true`, { good: 200 });
  if (!provided) {
    for (const answer of [made, written, read, listed, moved, removed])
      expect(answer.json.errorCode).to.equal('FEATURE_DISABLED');
    return;
  }
  expect(JSON.parse(made.text).file).to.have.all.keys(FILE).and.include({ kind: 'Folder' });
  expect(JSON.parse(written.text).file).to.have.all.keys([...FILE, 'etag']);
  expect(read.text).to.equal('{"a":1}');
  expect(JSON.parse(listed.text)).to.have.all.keys('items');
  expect(JSON.parse(moved.text).file).to.include({ path: `${folder}/two`, size: 7 });
  expect(JSON.parse(removed.text)).to.deep.equal({ path: folder, status: 'deleted' });
};
