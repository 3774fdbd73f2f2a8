import { expect } from 'chai';
import { createHash } from 'node:crypto';
import type { SandpoolClient } from '../../src/client/sandpool-client.ts';
import { SandboxFiles } from '../../src/cli/copy/sandbox-files.ts';
import { rejection } from '../support/harness/rejection.ts';

const PIECE = Buffer.alloc(512 * 1_024, 'a');

/** A sandbox whose files go on for ever; counts how often one is read. */
const aSandbox = () => {
  const sandbox = { read: 0 };
  const exec = async (): Promise<object> => {
    sandbox.read += 1;
    return { exitCode: 0, stdout: PIECE.toString('base64'), stderr: '', timedOut: false };
  };
  return {
    sandbox,
    files: new SandboxFiles(
      { exec } as unknown as SandpoolClient,
      'id',
      new AbortController().signal,
    ),
  };
};

const sha256 = (bytes: Buffer): string => createHash('sha256').update(bytes).digest('hex');

describe('a file that comes from a sandbox', () => {
  it('ends at the size that was announced, though the file goes on for ever', async () => {
    const { sandbox, files } = aSandbox();
    const pieces: Buffer[] = [];
    for await (const piece of files.read({
      path: '/log',
      size: PIECE.length + 3,
      sha256: sha256(Buffer.concat([PIECE, PIECE.subarray(0, 3)])),
      mode: 0o644,
    }))
      pieces.push(piece);
    expect(pieces.map(({ length }) => length)).to.deep.equal([PIECE.length, 3]);
    expect(sandbox.read).to.equal(2);
  });

  it('is refused at that size where it is another one now', async () => {
    const { sandbox, files } = aSandbox();
    const reading = (async () => {
      for await (const _ of files.read({ path: '/log', size: 10, sha256: 'other', mode: 0o644 }))
        continue;
    })();
    expect(await rejection(reading)).to.have.property(
      'message',
      '/log changed while it was copied',
    );
    expect(sandbox.read).to.equal(1);
  });
});
