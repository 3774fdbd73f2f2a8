import type { Duplex } from 'node:stream';
import { expect } from 'chai';
import { v7 } from 'uuid';
import {
  DefinitionRefused,
  InstanceGone,
  PortUnreachable,
  RecordConflict,
  type ExecRequest,
  type LogLine,
  type LogRequest,
  type SandboxDriver,
  type Terminal,
} from '../../src/contracts/sandbox-driver.ts';
import { dialled } from '../support/harness/dialled.ts';
import { eventually, NEVER_COMES_MS } from '../support/harness/eventually.ts';
import { FactLog } from '../support/harness/fact-log.ts';
import type { LaunchOrder, Claim, InstanceRecord } from '../../src/model/sandbox.ts';
import type { InstanceDefinition } from '../../src/model/templates/template.ts';
import {
  aClaim,
  aContainer,
  aDefinition,
  anOrder,
  permitted,
} from '../support/builders/instance-orders.ts';
import { rejection } from '../support/harness/rejection.ts';

export interface DriverUnderTest {
  readonly driver: SandboxDriver;
  readonly orders: Orders;
  /** Ends the driver and everything that it started. */
  close(): Promise<void>;
}

/** What the driver can run, and what not. */
export interface Orders {
  /** Its main process runs until it is ended. */
  readonly lasting: () => LaunchOrder;
  /** Its main process prints the text and ends with 0. */
  readonly printing: (text: string) => LaunchOrder;
  /** Its main process echoes what comes on the port; it may take a moment to listen. */
  readonly echoing: (port: number) => LaunchOrder;
  /** And the field that a refusal names. */
  readonly unfit: readonly { readonly definition: InstanceDefinition; readonly field: string }[];
}

/** Of drivers that run programs of this machine, in one container. */
export const ordersOnThisMachine = (echoServer: (port: number) => readonly string[]): Orders => ({
  lasting: () => anOrder(),
  printing: (text) => anOrder(aDefinition({ argv: ['echo', text] })),
  echoing: (port) => anOrder(aDefinition({ argv: echoServer(port) })),
  unfit: [
    {
      definition: { ...aDefinition(), containers: [aContainer(), aContainer({ name: 'second' })] },
      field: 'spec.containers',
    },
    { definition: aDefinition({ image: 'ghost' }), field: 'spec.containers[0].image' },
    {
      definition: aDefinition({ cpuCores: 100_000 }),
      field: 'spec.containers[0].resources.limits.cpu',
    },
    {
      definition: aDefinition({ memoryBytes: 2 ** 50 }),
      field: 'spec.containers[0].resources.limits.memory',
    },
    {
      definition: aDefinition({}, { placement: { runtimeClassName: 'gvisor' } }),
      field: 'spec.runtimeClassName',
    },
    { definition: aDefinition({}, { placement: { hostUsers: false } }), field: 'spec.hostUsers' },
    {
      definition: aDefinition({ extendedResources: { 'nvidia.com/gpu': 1 } }),
      field: 'spec.containers[0].extendedResources',
    },
    {
      definition: aDefinition({ ephemeralStorageBytes: 1 }),
      field: 'spec.containers[0].ephemeralStorage',
    },
  ],
});

const command = (argv: readonly string[], part: Partial<ExecRequest> = {}): ExecRequest => ({
  argv,
  timeoutMs: NEVER_COMES_MS,
  outputLimit: 1 << 20,
  ...part,
});

const until = async (terminal: Terminal, wanted: string): Promise<string> => {
  let seen = '';
  for await (const chunk of terminal.stream) {
    seen += String(chunk);
    if (seen.includes(wanted)) return seen;
  }
  throw new Error(`the terminal ended without ${wanted}: ${seen}`);
};

const claimOf = ({ poolOwner }: InstanceRecord, part: Partial<Claim> = {}): Claim =>
  aClaim({ owner: poolOwner, ...part });

const aLogRequest = (part: Partial<LogRequest> = {}): LogRequest => ({
  tailLines: 10,
  limitBytes: 1 << 20,
  ...part,
});

const followed = async (
  driver: SandboxDriver,
  id: string,
  after: string,
  signal = new AbortController().signal,
): Promise<readonly LogLine[]> => {
  const lines: LogLine[] = [];
  for await (const batch of driver.followLogs(id, { after }, signal)) lines.push(...batch.lines);
  return lines;
};

const reachable = async (driver: SandboxDriver, id: string, port: number): Promise<Duplex> => {
  let found: Duplex | undefined;
  await eventually(async () => {
    found = await dialled(driver, id, port).catch((error: unknown) => {
      if (!(error instanceof PortUnreachable)) throw error;
      return undefined;
    });
    return found !== undefined;
  }, 'the port is listened on');
  if (!found) throw new Error('no connection');
  return found;
};

const read = (stream: Duplex, length: number): Promise<Buffer> =>
  new Promise((resolve) => {
    const chunks: Buffer[] = [];
    let size = 0;
    const take = (chunk: Buffer): void => {
      chunks.push(chunk);
      size += chunk.length;
      if (size < length) return;
      stream.off('data', take).pause();
      resolve(Buffer.concat(chunks));
    };
    stream.on('data', take).resume();
  });

/**
 * What every driver promises. `make` gives a fresh one, unwatched; `sh` need not run in it, only
 * true, false, echo, cat.
 */
export const sandboxDriverSuite = (name: string, make: () => Promise<DriverUnderTest>): void => {
  describe(`SandboxDriver: ${name}`, () => {
    let under: DriverUnderTest;
    let driver: SandboxDriver;
    let log: FactLog;

    beforeEach(async () => {
      under = await make();
      driver = under.driver;
      log = new FactLog();
      await driver.watch(log.report);
    });
    afterEach(() => under.close());

    /** In order, each once where it comes several times in a row. */
    const kinds = (id: string): readonly string[] =>
      log.kinds(id).filter((kind, index, all) => kind !== all[index - 1]);
    const launched = async (launchOrder = under.orders.lasting()) => {
      const record = await driver.launch(launchOrder, permitted);
      await log.when(record.id, 'available');
      return record;
    };
    const claimed = async () => {
      const record = await launched();
      return driver.claim(record, claimOf(record));
    };

    it('describes the active isolation', () => {
      expect(driver.describe().isolation).to.be.a('string').that.is.not.empty;
      expect(driver.describe().problems).to.deep.equal([]);
    });

    it('launches an instance: its record is idle, the instance starting, then available', async () => {
      const launchOrder = under.orders.lasting();
      const record = await driver.launch(launchOrder, permitted);
      expect(record).to.deep.include({ ...launchOrder.record, state: 'idle' });
      const fact = await log.when(record.id, 'available');
      expect(fact.record).to.deep.equal(record);
      expect(kinds(record.id)).to.deep.equal(['starting', 'available']);
    });

    it('creates one instance of an id that is launched twice', async () => {
      const launchOrder = under.orders.lasting();
      const { id } = launchOrder.record;
      const [first, second] = await Promise.all([
        driver.launch(launchOrder, permitted),
        log.when(id, 'starting').then(() => driver.launch(launchOrder, permitted)),
      ]);
      await log.when(id, 'available');
      expect(second.id).to.equal(first.id);
      expect(kinds(id).filter((kind) => kind === 'available')).to.have.lengthOf(1);
    });

    it('refuses an impossible definition, naming the field', () => {
      for (const { definition, field } of under.orders.unfit)
        expect(() => driver.check(definition)).to.throw(DefinitionRefused, field);
      expect(() => driver.check(under.orders.lasting().definition)).not.to.throw();
    });

    it('accepts one of two claims of the same revision', async () => {
      const record = await launched();
      const results = await Promise.allSettled([
        driver.claim(record, claimOf(record)),
        driver.claim(record, claimOf(record, { claimedAt: 2 })),
      ]);
      const kept = results.flatMap((result) =>
        result.status === 'fulfilled' ? [result.value] : [],
      );
      const lost = results.flatMap((result) =>
        result.status === 'rejected' ? [result.reason] : [],
      );
      expect(kept).to.have.lengthOf(1);
      expect(lost[0]).to.be.instanceOf(RecordConflict);
      expect((await driver.read(record.id)).record).to.deep.equal(kept[0]);
    });

    it('changes the idle timeout of a claimed record, at the given revision', async () => {
      const record = await claimed();
      const amended = await driver.amend(record.id, { idleTimeoutMs: 5_000 }, record.revision);
      expect(amended.claim?.idleTimeoutMs).to.equal(5_000);
      expect(
        await rejection(driver.amend(record.id, { idleTimeoutMs: 1 }, record.revision)),
      ).to.be.instanceOf(RecordConflict);
    });

    it('pauses and resumes a claimed instance, or reports that it cannot', async () => {
      const record = await claimed();
      const paused = driver.amend(record.id, { pausedAt: 7 }, record.revision);
      if (!driver.describe().pauses) {
        expect(await rejection(paused)).to.be.instanceOf(DefinitionRefused);
        const same = await driver.amend(record.id, { idleTimeoutMs: 1 }, record.revision);
        expect(same.claim).not.to.have.property('pausedAt');
        return;
      }
      const held = await paused;
      expect(held.claim?.pausedAt).to.equal(7);
      const again = driver.amend(record.id, { pausedAt: 8 }, record.revision);
      expect(await rejection(again)).to.be.instanceOf(RecordConflict);
      const goes = await driver.amend(record.id, { pausedAt: null }, held.revision);
      expect(goes.claim).not.to.have.property('pausedAt');
      const ran = await driver.exec(record.id, command(['true']), new AbortController().signal);
      expect(ran.exitCode).to.equal(0);
      await driver.amend(record.id, { pausedAt: 9 }, goes.revision);
      await driver.release(record.id, { reason: 'deleted', exitCode: null });
      await log.when(record.id, 'gone');
    });

    it('bumps the revision of an idle record, so that no earlier claim lands', async () => {
      const record = await launched();
      const bumped = await driver.bump(record.id, record.revision);
      const again = await driver.bump(record.id, bumped.revision);
      expect(new Set([record.revision, bumped.revision, again.revision]).size).to.equal(3);
      expect(await rejection(driver.claim(record, aClaim()))).to.be.instanceOf(RecordConflict);
      expect(await rejection(driver.bump(record.id, bumped.revision))).to.be.instanceOf(
        RecordConflict,
      );
      const claim = await driver.claim(again, aClaim());
      expect(claim.state).to.equal('claimed');
      expect(await rejection(driver.bump(record.id, claim.revision))).to.be.instanceOf(
        RecordConflict,
      );
    });

    it('retires an idle instance: first its record is gone, then its process', async () => {
      const record = await launched();
      await driver.retire(record.id, record.revision, record.poolOwner.namespace);
      expect((await driver.read(record.id)).record).to.equal(undefined);
      // A process that ends at once may be seen to end before the answer to the deletion is.
      await eventually(
        () => log.of(record.id).some(({ vitals, record: left }) => vitals.kind === 'gone' && !left),
        'it is gone, and its record with it',
      );
    });

    it('does not retire an instance that was claimed in the meantime', async () => {
      const record = await claimed();
      expect(
        await rejection(driver.retire(record.id, 'an older revision', record.poolOwner.namespace)),
      ).to.be.instanceOf(RecordConflict);
      expect(
        await rejection(driver.retire(record.id, record.revision, record.poolOwner.namespace)),
      ).to.be.instanceOf(RecordConflict);
      expect((await driver.read(record.id)).vitals.kind).to.equal('available');
    });

    it('releases a claimed instance: records the first end at once, and deletes the record with it', async () => {
      const record = await claimed();
      await driver.release(record.id, { reason: 'deleted', exitCode: null });
      await driver.release(record.id, { reason: 'idle-timeout', exitCode: null });
      const gone = await log.when(record.id, 'gone');
      expect(gone.record).to.deep.include({
        state: 'ending',
        end: { reason: 'deleted', exitCode: null },
      });
    });

    it('deletes a record repeatedly, and accepts an unknown id', async () => {
      const record = await claimed();
      await driver.release(record.id, { reason: 'deleted', exitCode: null });
      await log.when(record.id, 'gone');
      await driver.forget(record.id);
      await driver.forget(record.id);
      await driver.release(v7(), { reason: 'deleted', exitCode: null });
      expect((await driver.read(record.id)).record).to.equal(undefined);
    });

    it('returns no record and state gone for an unknown id', async () => {
      const fact = await driver.read(v7());
      expect(fact.record).to.equal(undefined);
      expect(fact.vitals.kind).to.equal('gone');
    });

    it('executes commands with output, input and exit code', async () => {
      const { id } = await launched();
      const signal = new AbortController().signal;
      expect(await driver.exec(id, command(['true']), signal)).to.deep.include({
        exitCode: 0,
        timedOut: false,
        truncated: false,
      });
      expect((await driver.exec(id, command(['false']), signal)).exitCode).to.equal(1);
      expect(String((await driver.exec(id, command(['echo', 'a', 'b']), signal)).stdout)).to.equal(
        'a b\n',
      );
      expect(
        String((await driver.exec(id, command(['cat'], { stdin: 'typed' }), signal)).stdout),
      ).to.equal('typed');
      expect((await driver.exec(id, command(['no-such-command']), signal)).exitCode).to.equal(127);
    });

    it('reports each piece of output before storing it, and ends a command that is refused memory', async () => {
      const { id } = await launched();
      const { signal } = new AbortController();
      const pieces: Buffer[] = [];
      const { stdout } = await driver.exec(
        id,
        command(['echo', 'told'], { gathered: (bytes) => void pieces.push(Buffer.from(bytes)) }),
        signal,
      );
      expect(Buffer.concat(pieces).toString()).to.equal(stdout.toString()).and.to.equal('told\n');
      const full = new Error('no room');
      const refused = driver.exec(
        id,
        command(['echo', 'told'], {
          gathered: () => {
            throw full;
          },
        }),
        signal,
      );
      expect(await rejection(refused)).to.equal(full);
    });

    it('rejects exec and attach on a missing instance with InstanceGone', async () => {
      expect(
        await rejection(driver.exec(v7(), command(['true']), new AbortController().signal)),
      ).to.be.instanceOf(InstanceGone);
      expect(
        await rejection(driver.attach(v7(), { argv: ['cat'], cols: 80, rows: 24 })),
      ).to.be.instanceOf(InstanceGone);
      const record = await claimed();
      await driver.release(record.id, { reason: 'deleted', exitCode: null });
      await log.when(record.id, 'gone');
      expect(
        await rejection(driver.exec(record.id, command(['true']), new AbortController().signal)),
      ).to.be.instanceOf(InstanceGone);
    });

    it('attaches a terminal that carries bytes both ways and ends with an exit code', async () => {
      const { id } = await launched();
      const terminal = await driver.attach(id, { argv: ['cat'], cols: 80, rows: 24 });
      terminal.resize(100, 30);
      terminal.stream.write('over and out\r');
      await until(terminal, 'over and out');
      terminal.close();
      terminal.close();
      expect(await terminal.exit).to.satisfy((code: number | null) => code === null || code >= 0);
    });

    it('keeps the output of an instance, even after its end', async () => {
      const { id } = await driver.launch(under.orders.printing('one\ntwo'), permitted);
      await log.when(id, 'gone');
      await eventually(
        async () => (await driver.logs(id, aLogRequest())).lines.length === 2,
        'both lines are kept',
      );

      const all = await driver.logs(id, aLogRequest());
      const last = await driver.logs(id, aLogRequest({ tailLines: 1 }));

      expect(all.lines.map(({ text, partial }) => ({ text: String(text), partial }))).to.deep.equal(
        [
          { text: 'one', partial: false },
          { text: 'two', partial: false },
        ],
      );
      expect(all.lines[0]?.time).to.match(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{9}Z$/);
      expect(all.truncated).to.equal(false);
      expect(last.lines.map(({ text }) => String(text))).to.deep.equal(['two']);
      expect(last.truncated).to.equal(true);
    });

    it('follows the output of an instance to its end, from any position', async () => {
      const { id } = await driver.launch(under.orders.printing('one\ntwo'), permitted);

      const lines = await followed(driver, id, '0');

      expect(lines.map(({ text }) => String(text))).to.deep.equal(['one', 'two']);
      expect(
        (await followed(driver, id, lines[0]?.next ?? '')).map(({ text }) => String(text)),
      ).to.deep.equal(['two']);
      expect(await followed(driver, id, lines[1]?.next ?? '')).to.deep.equal([]);
    });

    it('returns no lines of an instance without output', async () => {
      const { id } = await launched();
      expect(await driver.logs(id, aLogRequest())).to.deep.include({ lines: [], truncated: false });
    });

    it('stops following at an abort', async () => {
      const { id } = await launched();
      const controller = new AbortController();
      const following = followed(driver, id, '0', controller.signal);
      controller.abort();
      expect(await following).to.deep.equal([]);
    });

    it('ends the terminals of an instance that ends', async () => {
      const record = await claimed();
      const terminal = await driver.attach(record.id, { argv: ['cat'], cols: 80, rows: 24 });
      terminal.stream.resume();
      await driver.release(record.id, { reason: 'deleted', exitCode: null });
      await log.when(record.id, 'gone');
      await terminal.exit;
    });

    it('dials a port, with a separate connection each, and bytes both ways', async () => {
      const { id } = await launched(under.orders.echoing(7_000));
      const [one, two] = [await reachable(driver, id, 7_000), await reachable(driver, id, 7_000)];
      one.write('one');
      two.write('two');
      expect(String(await read(one, 3))).to.equal('one');
      expect(String(await read(two, 3))).to.equal('two');
      const long = Buffer.alloc(3 << 20, 'long');
      one.write(long);
      expect((await read(one, long.length)).equals(long)).to.equal(true);
      one.destroy();
      two.destroy();
    });

    it('rejects a dial to a closed port with PortUnreachable, to a missing instance with InstanceGone', async () => {
      const { id } = await launched(under.orders.echoing(7_000));
      expect(await rejection(dialled(driver, id, 7_001)))
        .to.be.instanceOf(PortUnreachable)
        .with.property('message')
        .that.contains('7001');
      expect(
        await rejection(driver.dial(v7(), 7_000, new AbortController().signal)),
      ).to.be.instanceOf(InstanceGone);
      expect(
        await rejection(driver.dial(id, 7_000, AbortSignal.abort(new Error('no more')))),
      ).to.have.property('message', 'no more');
    });

    it('runs the probes of an instance, possibly none', async () => {
      const { id } = await launched();
      expect(await driver.probe(id)).to.deep.equal([]);
      expect(await rejection(driver.probe(v7()))).to.be.instanceOf(InstanceGone);
    });

    it('ends the connections to an instance that ends', async () => {
      const idle = await launched(under.orders.echoing(7_000));
      const record = await driver.claim(idle, claimOf(idle));
      const connection = await reachable(driver, record.id, 7_000);
      const closed = new Promise<void>((resolve) => {
        connection
          .on('error', () => {})
          .once('close', resolve)
          .resume();
      });
      await driver.release(record.id, { reason: 'deleted', exitCode: null });
      await log.when(record.id, 'gone');
      await closed;
      expect(
        await rejection(driver.dial(record.id, 7_000, new AbortController().signal)),
      ).to.be.instanceOf(InstanceGone);
    });
  });
};
