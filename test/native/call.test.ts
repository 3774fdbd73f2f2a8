import { execFileSync, spawn, type ChildProcessWithoutNullStreams } from 'node:child_process';
import { mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { buffer } from 'node:stream/consumers';
import { join } from 'node:path';
import { expect } from 'chai';
import { openWorkshop, within, type Workshop } from './support.ts';

const lengthOf = (bytes: number): Buffer => {
  const length = Buffer.alloc(4);
  length.writeUInt32BE(bytes);
  return length;
};
const requestOf = (...tokens: readonly string[]): Buffer => {
  const request = Buffer.from(tokens.map((token) => `${token}\0`).join(''));
  return Buffer.concat([lengthOf(request.length), request]);
};
const bodyOf = (text: string): Buffer =>
  Buffer.concat([lengthOf(text.length), Buffer.from(text), lengthOf(0)]);

describe('the agent of a Pod', () => {
  let workshop: Workshop;
  before(() => {
    workshop = openWorkshop();
  });
  after(() => workshop.close());

  const begin = (): ChildProcessWithoutNullStreams =>
    spawn(workshop.launcher, ['call'], { env: {} });
  /** All that it says, by types of frames. */
  const framesOf = (said: Buffer): string => {
    let types = '';
    for (let at = 1; at < said.length; at += 5 + said.readUInt32BE(at + 1))
      types += String.fromCharCode(said.readUInt8(at));
    return types;
  };
  const answered = async (...input: readonly Buffer[]): Promise<Buffer> => {
    const agent = begin();
    agent.stdin.end(Buffer.concat(input));
    return await within(buffer(agent.stdout), 'it ends');
  };

  it('puts a copy of itself into a folder, also over an earlier one', () => {
    const folder = join(workshop.folder, 'installed');
    mkdirSync(folder);
    writeFileSync(join(folder, 'launcher.new'), 'half of one');
    for (let time = 0; time < 2; time += 1) execFileSync(workshop.launcher, ['install', folder]);

    expect(readdirSync(folder)).to.deep.equal(['launcher']);
    const copy = join(folder, 'launcher');
    expect(readFileSync(copy).equals(readFileSync(workshop.launcher))).to.equal(true);
    expect(statSync(copy).mode & 0o7777).to.equal(0o555);
  });

  it('carries out one call by its input and output', async () => {
    const path = join(workshop.folder, 'file');
    const written = await answered(requestOf('write', 'path', path), bodyOf('content'));
    const read = await answered(requestOf('read', 'path', path));
    const refused = await answered(requestOf('stat', 'path', `${path}/below`));

    expect(framesOf(written)).to.equal('HE');
    expect(String(read)).to.match(/content$/);
    expect(framesOf(refused)).to.equal('X');
    expect(String(refused)).to.contain('not-a-folder');
  });

  it('stays after its answer until the caller leaves, who might not have heard it', async () => {
    const agent = begin();
    agent.stdin.write(requestOf('stat', 'path', '/'));
    const [said] = (await within(
      new Promise((resolve) => agent.stdout.once('data', (...of) => resolve(of))),
      'it answers',
    )) as [Buffer];
    expect([said[0], agent.exitCode]).to.deep.equal([0, null]);
    const ended = new Promise((resolve) => agent.once('exit', resolve));
    agent.stdin.end();
    expect(await within(ended, 'it ends')).to.equal(0);
  });

  it('writes nothing whose end did not come', async () => {
    const path = join(workshop.folder, 'cut-off');
    const cut = bodyOf('content').subarray(0, -4);

    expect(framesOf(await answered(requestOf('write', 'path', path), cut))).to.equal('H');
    expect(readdirSync(workshop.folder)).to.not.include('cut-off');
  });

  it('lets one of several processes replace a version, and no other', async () => {
    const path = join(workshop.folder, 'version');
    for (let round = 0; round < 5; round += 1) {
      writeFileSync(path, 'old');
      const { mtimeNs } = statSync(path, { bigint: true });
      const write = requestOf('write', 'path', path, 'ifmatch', `3:${mtimeNs}`);
      const all = await Promise.all(
        Array.from({ length: 16 }, () => answered(write, bodyOf('replaced'))),
      );
      const done = all.filter((said) => framesOf(said) === 'HE');
      expect(done).to.have.length(1);
    }
  });
});
