import { expect } from 'chai';
import { buffer } from 'node:stream/consumers';
import { FileRefused } from '../../src/contracts/files.ts';
import { noFiles } from '../support/fakes/nothing-inside.ts';
import { InstanceGone, NotJoinable, OutcomeUnknown } from '../../src/contracts/sandbox-driver.ts';
import { Refusal } from '../../src/model/refusals.ts';
import { IdempotentRequest, requestOwnerOf } from '../../src/actors/request/idempotent-request.ts';
import { ClaimFiles } from '../../src/actors/claim/claim-files.ts';
import type { ClaimRequest } from '../../src/actors/sandbox/commands/sandbox-operations.ts';
import { FakeSandboxDriver } from '../support/fakes/fake-sandbox-driver.ts';
import { MemoryFiles } from '../support/fakes/memory-files.ts';
import { alice, aSupervisor } from '../support/harness/a-supervisor.ts';
import { eventually } from '../support/harness/eventually.ts';
import { rejection } from '../support/harness/rejection.ts';

const MARK = { key: 'k'.repeat(22), body: 'b'.repeat(22) };
const NEVER = new AbortController().signal;

const aFile = (path: string, content = 'x', mode?: number) => ({
  path: Buffer.from(path),
  content: Buffer.from(content),
  mode,
});

/** Refuses to write a name that `failures` has. */
class FailingFiles extends MemoryFiles {
  readonly failures = new Map<string, Error>();

  constructor() {
    super();
    const { write } = this;
    this.write = async (place, content, ...rest) => {
      const failure = this.failures.get(place.path.toString());
      if (failure) throw failure;
      return await write(place, content, ...rest);
    };
  }
}

describe('files of a claim', () => {
  const filled = async (replicas = 2, driver = new FakeSandboxDriver()) => {
    const files = new FailingFiles();
    driver.files = files;
    const made = await aSupervisor({ pool: { replicas }, driver });
    const { supervisor, pool, coordination } = made;
    await eventually(() => supervisor.pools.get(pool.uid)?.counts.idle === replicas, 'filled');
    const counted = async () => (await coordination.used(alice)).sandboxes;
    const read = async (id: string, path: string) => {
      const opened = await files.open({ id, path: Buffer.from(path) }, {}, NEVER);
      return { text: (await buffer(opened.content)).toString(), mode: opened.stat.mode };
    };
    const claimMarked = async (part: Partial<ClaimRequest> = {}) => {
      const opening = new IdempotentRequest(coordination, MARK, { owner: requestOwnerOf(alice) });
      return await made.claim(alice, { poolName: 'default', opening, ...part });
    };
    const refused = async (work: Promise<unknown>) => {
      const error = await rejection(work);
      if (!(error instanceof Refusal)) throw error;
      return error;
    };
    return { ...made, files, counted, read, claimMarked, refused };
  };

  it('exist when the claim is answered, with their modes and folders', async () => {
    const { claim, read, files } = await filled();
    const { id } = await claim(alice, {
      poolName: 'default',
      files: [
        aFile('/home/sandbox/a/b', 'deep', 0o600),
        aFile('/tmp/run', '#!', 0o755),
        aFile('/tmp/no', ''),
      ],
    });

    expect(await read(id, '/home/sandbox/a/b')).to.deep.equal({ text: 'deep', mode: 0o600 });
    expect(await read(id, '/tmp/run')).to.deep.equal({ text: '#!', mode: 0o755 });
    expect(await read(id, '/tmp/no')).to.deep.equal({ text: '', mode: 0o644 });
    expect(files.prepared[0]).to.equal(id);
  });

  it('make the driver prepare the instance that the next claim gets', async () => {
    const { claim, files } = await filled();
    await claim(alice, { poolName: 'default', files: [aFile('/tmp/a', '')] });
    const [, next] = files.prepared;
    const { id } = await claim(alice, { poolName: 'default' });

    expect(next).to.equal(id);
    expect(files.prepared).to.have.length(2);
  });

  it('cause no preparation for claims without files', async () => {
    const { claim, files } = await filled();
    await claim(alice, { poolName: 'default' });

    expect(files.prepared).to.deep.equal([]);
  });

  for (const [name, failure, code] of [
    ['beneath a file', new FileRefused('not-a-folder', 'a part of the path is none'), 'CONFLICT'],
    ['on a full disk', new FileRefused('no-space', 'full'), 'NO_SPACE'],
    ['where it may not', new FileRefused('denied', 'no'), 'FORBIDDEN'],
    ['under too many links', new FileRefused('bad-path', 'too many links'), 'INVALID_ARGUMENT'],
    ['in an image without a shell', new FileRefused('unsupported', 'no sh'), 'FEATURE_DISABLED'],
    ['in one that ended', new InstanceGone('gone'), 'UNAVAILABLE'],
    ['in one that is not reached', new NotJoinable('away'), 'UNAVAILABLE'],
    ['whose way is lost', new OutcomeUnknown('lost'), 'UNAVAILABLE'],
  ] as const)
    it(`that cannot be written (${name}) return the instance and give the reason`, async () => {
      const { claim, refused, files, counted, history, supervisor, pool } = await filled(1);
      files.failures.set('/tmp/b', failure);
      const error = await refused(
        claim(alice, { poolName: 'default', files: [aFile('/tmp/a'), aFile('/tmp/b', 'canary')] }),
      );

      expect(error.code).to.equal(code);
      expect(error.detail).to.deep.equal({
        field: 'files[1].path',
        hint: 'the claim was undone',
      });
      expect(error.message)
        .to.match(/^files\[1\]\.path: ./)
        .and.not.include('canary');
      await eventually(() => history.finished.length === 1, 'it has ended');
      expect(history.finished[0]?.endReason).to.equal('claim-failed');
      await eventually(async () => (await counted()) === 0, 'its seat is given back');
      const idle = () => supervisor.pools.get(pool.uid)?.counts.idle;
      await eventually(() => idle() === 1, 'another one is in its place');
      files.failures.clear();
      await claim(alice, { poolName: 'default', files: [aFile('/tmp/b')] });
    });

  it('that are not written in time return the instance', async () => {
    const { claim, refused, files, clock, history } = await filled();
    files.write = async (_place, _request, signal) =>
      await new Promise((_resolve, reject) => {
        signal.addEventListener('abort', () => reject(signal.reason));
      });
    const failed = refused(claim(alice, { poolName: 'default', files: [aFile('/tmp/a')] }));
    await eventually(() => {
      clock.advance(5_000);
      return history.finished.length === 1;
    }, 'it is over');

    expect((await failed).code).to.equal('UNAVAILABLE');
  });

  it('are refused before a claim if the deployment does not support files', async () => {
    const { claim, refused, driver, supervisor, pool } = await filled();
    driver.files = noFiles('none here');
    const error = await refused(claim(alice, { poolName: 'default', files: [aFile('/tmp/a')] }));

    expect(error.code).to.equal('FEATURE_DISABLED');
    expect(supervisor.pools.get(pool.uid)?.counts.running).to.equal(0);
  });

  it('of pending claims are limited to a share of memory', async () => {
    const { supervisor, driver, clock, pendingRequests } = await filled(0);
    const claimFiles = new ClaimFiles({ supervisor, driver, clock, pendingRequests });
    const bob = { ...alice, user: 'bob' };
    const mib = [aFile('/tmp/a', 'x'.repeat(1 << 20))];
    const held = Array.from({ length: 16 }, () => claimFiles.hold(alice, mib));
    expect(() => claimFiles.hold(alice, mib)).to.throw('exceed 16 MiB');
    claimFiles.hold(bob, mib);
    held[0]?.[Symbol.dispose]();
    claimFiles.hold(alice, mib);

    for (const user of ['c', 'd', 'e'])
      for (let count = 0; count < (user === 'e' ? 15 : 16); count += 1)
        claimFiles.hold({ ...alice, user }, mib);
    expect(() => claimFiles.hold({ ...alice, user: 'f' }, mib)).to.throw('try again shortly');
  });

  describe('under an Idempotency-Key', () => {
    const files = [aFile('/tmp/a', 'mine')];

    it('are written again by a repetition if the first request died before its answer', async () => {
      const { claimMarked, coordination, read, files: kept, supervisor, pool } = await filled();
      const first = await claimMarked();
      await coordination.giveUpRequest(MARK, requestOwnerOf(alice)); // as if the daemon had died
      const again = await claimMarked({ files });

      expect(again.id).to.equal(first.id);
      expect((await read(first.id, '/tmp/a')).text).to.equal('mine');
      expect(kept.prepared, 'nothing was claimed').to.deep.equal([]);
      expect(supervisor.pools.get(pool.uid)?.counts.running).to.equal(1);
    });

    it('that fail in a repetition do not end the sandbox, but name it', async () => {
      const { claimMarked, coordination, refused, files: kept, supervisor } = await filled();
      const first = await claimMarked({ files });
      await coordination.giveUpRequest(MARK, requestOwnerOf(alice));
      kept.failures.set('/tmp/a', new FileRefused('no-space', 'full'));
      const error = await refused(claimMarked({ files }));

      expect(error.code).to.equal('NO_SPACE');
      expect(error.detail).to.include({ field: 'files[0].path', sandboxId: first.id });
      expect(supervisor.sandbox(first.id)?.status).to.equal('Running');
    });

    for (const [what, confirmRequest] of [
      ['another replica took the request over', () => Promise.resolve(false)],
      ['nobody can tell whose the request is', () => Promise.reject(new Error('away'))],
    ] as const)
      it(`that fail do not end the sandbox if ${what}`, async () => {
        const { claimMarked, coordination, refused, files: kept, supervisor } = await filled();
        Object.assign(coordination, { confirmRequest });
        kept.failures.set('/tmp/a', new OutcomeUnknown('lost'));
        const { code, detail } = await refused(claimMarked({ files }));

        const [id = ''] = kept.prepared;
        expect([code, detail?.['sandboxId']]).to.deep.equal(['UNAVAILABLE', id]);
        expect(supervisor.sandbox(id)?.status).to.equal('Running');
      });

    it('that failed release the key, so a repetition claims another sandbox', async () => {
      const slow = new FakeSandboxDriver({ endsByItself: false });
      const { claimMarked, coordination, refused, files: kept, read } = await filled(2, slow);
      kept.failures.set('/tmp/a', new FileRefused('no-space', 'full'));
      await refused(claimMarked({ files }));
      await coordination.giveUpRequest(MARK, requestOwnerOf(alice));
      kept.failures.clear();
      const again = await claimMarked({ files });

      expect(again.status).to.equal('Running');
      expect((await read(again.id, '/tmp/a')).text).to.equal('mine');
      await coordination.giveUpRequest(MARK, requestOwnerOf(alice));
      const [ended = ''] = kept.prepared;
      expect(ended).to.not.equal(again.id);
      slow.end(ended);
      expect((await claimMarked({ files })).id, 'the later one is found').to.equal(again.id);
    });

    it('stay in flight until the end of a failed claim is durable', async () => {
      const { claimMarked, refused, files: kept, driver, clock, pendingRequests } = await filled();
      kept.failures.set('/tmp/a', new FileRefused('no-space', 'full'));
      driver.hold('release');
      const failed = refused(claimMarked({ files }));
      await eventually(() => driver.calls.some((call) => call.startsWith('release')), 'it ends');
      expect(pendingRequests.settled(MARK)).to.equal(undefined);
      clock.advance(5_001);
      expect((await failed).code).to.equal('NO_SPACE');

      const settled = pendingRequests.settled(MARK);
      expect(settled).to.not.equal(undefined);
      driver.letGo('release');
      await settled;
      expect(pendingRequests.settled(MARK)).to.equal(undefined);
    });

    it('are not written into a sandbox that its owner has paused', async () => {
      const { claimMarked, coordination, refused, supervisor } = await filled();
      const first = await claimMarked();
      await supervisor.pauses.set(first.id, true);
      await coordination.giveUpRequest(MARK, requestOwnerOf(alice));

      expect((await refused(claimMarked({ files }))).code).to.equal('SANDBOX_NOT_RUNNING');
    });
  });
});
