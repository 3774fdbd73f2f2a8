import { expect } from 'chai';
import type { FileEvent, SandboxFiles } from '../../src/contracts/files.ts';
import { noFiles } from '../support/fakes/nothing-inside.ts';
import { OutcomeUnknown } from '../../src/contracts/sandbox-driver.ts';
import { fileOperations } from '../../src/services/files/files.ts';
import { rejection } from '../support/harness/rejection.ts';

const caller = { namespace: 'n', team: 't', user: 'u', role: 'user', keyId: 'k' } as const;
const target = { sandboxId: 's', path: Buffer.from('/') };
const created: FileEvent = { type: 'created', path: Buffer.from('file'), isFolder: false };

/** Follows a folder of which one change is told, and then fails. */
const followed = async (failure: Error): Promise<readonly FileEvent[]> => {
  const files: SandboxFiles = {
    ...noFiles(''),
    provided: true,
    watch: () =>
      Promise.resolve(
        (async function* () {
          yield await Promise.resolve([created]);
          throw failure;
        })(),
      ),
  };
  const operations = fileOperations({
    files,
    requireRunning: () => Promise.resolve(),
    begin: () => () => {},
  });
  const { events, close } = await operations.watchFiles(caller, target, { recursive: false });
  const seen: FileEvent[] = [];
  try {
    for await (const batch of events(new AbortController().signal)) seen.push(...batch);
  } finally {
    close();
  }
  return seen;
};

describe('a watch on files', () => {
  it('ends without an error when its sandbox ends', async () => {
    expect(await followed(new OutcomeUnknown('the way was lost'))).to.deep.equal([created]);
  });

  it('fails if the daemon fails', async () => {
    expect(await rejection(followed(new Error('ours')))).to.have.property('message', 'ours');
  });
});
