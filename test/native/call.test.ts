import { spawn, type ChildProcessWithoutNullStreams } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync, statSync, writeFileSync } from 'node:fs';
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
  /** All that it says, by types of whole frames. */
  const framesOf = (said: Buffer): string => {
    let types = '';
    for (let at = 1; at + 5 <= said.length;) {
      const end = at + 5 + said.readUInt32BE(at + 1);
      if (end > said.length) break;
      types += String.fromCharCode(said.readUInt8(at));
      at = end;
    }
    return types;
  };
  /** What it says to its end; the input ends once the answer is whole. */
  const answered = async (
    input: readonly Buffer[],
    isWhole = (said: Buffer) => /[EX]$/.test(framesOf(said)),
  ): Promise<Buffer> => {
    const agent = begin();
    let said = Buffer.alloc(0);
    agent.stdout.on('data', (bytes: Buffer) => {
      said = Buffer.concat([said, bytes]);
      if (isWhole(said)) agent.stdin.end();
    });
    agent.stdin.write(Buffer.concat(input));
    await within(once(agent, 'close'), 'it ends');
    return said;
  };

  it('carries out one call over its input and output', async () => {
    const path = join(workshop.folder, 'file');
    const written = await answered([requestOf('write', 'path', path), bodyOf('content')]);
    const read = await answered([requestOf('read', 'path', path)], (said) =>
      String(said).endsWith('content'),
    );
    const refused = await answered([requestOf('stat', 'path', `${path}/below`)]);

    expect(framesOf(written)).to.equal('HE');
    expect(String(read)).to.match(/content$/);
    expect(framesOf(refused)).to.equal('X');
    expect(String(refused)).to.contain('not-a-folder');
  });

  it('stays after its answer until the caller disconnects, to repeat a lost answer', async () => {
    const agent = begin();
    agent.stdin.write(requestOf('stat', 'path', '/'));
    const [said] = (await within(once(agent.stdout, 'data'), 'it answers')) as [Buffer];
    expect([said[0], agent.exitCode]).to.deep.equal([0, null]);
    const ended = once(agent, 'exit');
    agent.stdin.end();
    expect(await within(ended, 'it ends')).to.deep.equal([0, null]);
  });

  it('ends with its caller, even if nobody reads its output', async () => {
    const path = join(workshop.folder, 'large');
    writeFileSync(path, Buffer.alloc(8 << 20));
    const agent = begin();
    agent.stdin.write(requestOf('read', 'path', path));
    await within(once(agent.stdout, 'readable'), 'it begins');
    const ended = once(agent, 'exit');
    agent.stdin.end();

    expect(await within(ended, 'it ends')).to.deep.equal([0, null]);
    agent.stdout.destroy();
  });

  it('writes nothing if the end of the content is missing', async () => {
    const path = join(workshop.folder, 'cut-off');
    const cut = bodyOf('content').subarray(0, -4);

    const isAsked = (said: Buffer): boolean => framesOf(said) === 'H';

    await answered([requestOf('write', 'path', path), cut], isAsked);
    expect(readdirSync(workshop.folder)).to.not.include('cut-off');
  });

  it('repeats the answer to a change, unless the caller has acknowledged it', async () => {
    const mkdir = (name: string): Buffer =>
      requestOf('mkdir', 'path', join(workshop.folder, name), 'id', name);
    const again = (name: string): Promise<Buffer> => answered([requestOf('answer', 'id', name)]);
    const lost = begin();
    lost.stdin.end(mkdir('lost'));
    await within(once(lost.stdout, 'data'), 'it answers');
    await answered([mkdir('came'), Buffer.of(0)]);

    expect(framesOf(await again('lost'))).to.equal('E');
    expect(framesOf(await again('lost'))).to.equal('E');
    expect(String(await again('came'))).to.contain('not-found');
    lost.kill();
  });

  it('lets one of several processes replace a version, and no other', async () => {
    const path = join(workshop.folder, 'version');
    for (let round = 0; round < 5; round += 1) {
      writeFileSync(path, 'old');
      const { mtimeNs } = statSync(path, { bigint: true });
      const write = requestOf('write', 'path', path, 'ifmatch', `3:${mtimeNs}`);
      const all = await Promise.all(
        Array.from({ length: 16 }, () => answered([write, bodyOf('replaced')])),
      );
      const done = all.filter((said) => framesOf(said) === 'HE');
      expect(done).to.have.length(1);
    }
  });
});
