import { expect } from 'chai';
import { v7 } from 'uuid';
import {
  InputClosed,
  ProcessEnded,
  ProcessesFull,
  ProcessGone,
  ProcessRefused,
  type OutputRequest,
  type ProcessDriver,
  type ProcessOrder,
} from '../../src/contracts/processes.ts';
import { Deferred } from '../../src/lib/deferred.ts';
import { InstanceGone, OutcomeUnknown } from '../../src/contracts/sandbox-driver.ts';
import {
  ENDED_PROCESSES,
  KEPT_OUTPUT_BYTES,
  LIVE_PROCESSES,
  type ProcessFact,
} from '../../src/model/process.ts';
import { eventually, NEVER_COMES_MS } from '../support/harness/eventually.ts';
import { OutputReading } from '../support/harness/output-reading.ts';
import { rejection } from '../support/harness/rejection.ts';
import { skipBecause } from '../support/harness/skip-because.ts';

export interface ProcessesUnderTest {
  readonly processes: ProcessDriver;
  /** An instance that runs, with a shell and the usual programs. */
  instance(): Promise<string>;
  /** Why its instances can give no process a terminal. */
  readonly withoutTerminal?: string;
  close(): Promise<void>;
}

const NEVER = new AbortController().signal;
/** More than a loaded machine takes. */
const MOST_TRIES = 5;

/** What every driver's processes do, with programs that run in earnest. */
export const processesSuite = (name: string, open: () => Promise<ProcessesUnderTest>): void => {
  describe(`processes of ${name}`, function () {
    let under: ProcessesUnderTest;
    let id: string;
    const readings: OutputReading[] = [];

    before(async () => {
      under = await open();
      id = await under.instance();
    });
    afterEach(async () => {
      for (const reading of readings.splice(0)) await reading.leave();
      const left = [...(await list())];
      const removeThem = async (): Promise<void> => {
        for (let one = left.pop(); one; one = left.pop()) await removed(one.processId);
      };
      await Promise.all(Array.from({ length: 8 }, removeThem));
    });
    after(() => under.close());

    /** A way into the sandbox that breaks off says nothing; the same call may be repeated. */
    const again = async <T>(call: () => Promise<T>): Promise<T> => {
      for (let tries = 1; ; tries += 1)
        try {
          return await call();
        } catch (error) {
          if (!(error instanceof OutcomeUnknown) || tries === MOST_TRIES) throw error;
        }
    };
    const list = (): Promise<readonly ProcessFact[]> => again(() => under.processes.list(id));
    const find = (processId: string): Promise<ProcessFact | undefined> =>
      again(() => under.processes.find(id, processId));
    const removed = async (processId: string): Promise<void> => {
      try {
        await again(() => under.processes.remove(id, processId));
      } catch (error) {
        if (!(error instanceof ProcessGone)) throw error;
      }
    };

    const start = (script: string, part: Partial<ProcessOrder> = {}): Promise<ProcessFact> => {
      const order = {
        processId: v7(),
        tenant: 'team/user',
        argv: ['/bin/sh', '-c', script],
        stdin: false,
        ...part,
      };
      return again(() => under.processes.start(id, order));
    };
    const read = ({ processId }: ProcessFact, part: Partial<OutputRequest> = {}): OutputReading => {
      const reading = new OutputReading((signal) =>
        under.processes.output(id, processId, { pace: false, ...part, signal }),
      );
      readings.push(reading);
      return reading;
    };
    const signal = ({ processId }: ProcessFact, name: 'USR1' | 'KILL'): Promise<void> =>
      again(() => under.processes.signal(id, processId, name));
    const write = ({ processId }: ProcessFact, text: string): Promise<void> =>
      under.processes.write(id, processId, { bytes: Buffer.from(text), signal: NEVER });
    const ended = (fact: ProcessFact): Promise<ProcessFact> => again(() => read(fact).end());

    it('print to both streams, and end with their exit code', async () => {
      const fact = await start('echo out; echo err >&2; exit 3', { tag: 'mine' });
      const reading = read(fact);

      const end = await reading.end();

      expect(reading.text('stdout')).to.equal('out\n');
      expect(reading.text('stderr')).to.equal('err\n');
      expect(end).to.include({ status: 'Exited', exitCode: 3, tag: 'mine' });
      expect(end.endedAt).to.be.at.least(end.startedAt);
      expect(await find(fact.processId)).to.deep.equal(end);
    });

    it('have the working folder, variables and pid that they report', async () => {
      const fact = await start('echo "$PWD $ONE $$"', { cwd: '/usr', env: { ONE: 'of mine' } });
      const reading = read(fact);
      await reading.end();

      expect(reading.text('stdout')).to.equal(`/usr of mine ${fact.pid}\n`);
    });

    it('show the command that started them', async () => {
      const words = ['one\ntwo\\n', 'a "b" \\ $c é', '', '-n'];
      const argv = ['/bin/sh', '-c', 'printf "<%s>" "$@"', 'sh', ...words];
      const fact = await start('', { argv, tag: 'x\\y' });
      const reading = read(fact);

      expect(await reading.end()).to.deep.include({ argv, tag: 'x\\y' });
      expect(reading.text('stdout')).to.equal(words.map((word) => `<${word}>`).join(''));
      expect(await find(fact.processId)).to.deep.include({ argv });
    });

    it('are started once per id, however often that is requested', async () => {
      const processId = v7();
      const facts = await Promise.all([1, 2, 3].map(() => start('exec sleep 1000', { processId })));
      const again = await start('exec sleep 1000', { processId });

      expect(new Set([...facts, again].map(({ pid }) => pid)).size).to.equal(1);
      expect(await list()).to.have.length(1);
    });

    it('are listed, the latest start first', async () => {
      const first = await start('exec sleep 1000');
      const second = await start('exec sleep 1000');

      const found = await list();

      expect(found.map(({ processId }) => processId)).to.deep.equal([
        second.processId,
        first.processId,
      ]);
      expect(found[0]).to.include({ status: 'Running', tty: false, stdin: false });
    });

    it('are read from any position, by several readers', async () => {
      const fact = await start('printf one; read go; printf two; read rest', { stdin: true });
      const first = read(fact);
      await first.until('one');
      await write(fact, 'go\n');
      await first.until('onetwo');
      const [behindOne] = first.positions();

      const second = read(fact, { from: behindOne ?? '' });
      const latest = read(fact, { from: 'latest' });
      await second.until('two');
      await first.leave();
      await write(fact, 'x\n');

      expect((await second.end()).exitCode).to.equal(0);
      await latest.end();
      expect([second.text('stdout'), latest.text('stdout')]).to.deep.equal(['two', '']);
    });

    it('are read from the position that was reported', async () => {
      const fact = await start('printf one; read go; printf two', { stdin: true });
      await read(fact).until('one');
      const positioned = new Deferred<void>();
      const latest = read(fact, { from: 'latest', positioned: () => positioned.resolve() });
      await positioned.promise;
      await write(fact, 'go\n');

      await latest.end();
      expect(latest.text('stdout')).to.equal('two');
    });

    it('are read from the beginning if nothing was printed at the position yet', async () => {
      const fact = await start('printf one; read x; printf two', { stdin: true });
      const early = read(fact, { from: '900000000000000' });
      await early.until('one');
      await write(fact, 'x\n');

      expect((await early.end()).exitCode).to.equal(0);
      const late = read(fact, { from: '7' });
      await late.end();
      expect([early.text('stdout'), late.text('stdout')]).to.deep.equal(['onetwo', 'onetwo']);
    });

    it('lose the oldest unread output, and report how much', async () => {
      const bytes = 3 * KEPT_OUTPUT_BYTES;
      const fact = await start(`head -c ${bytes} /dev/zero; printf end`);
      await eventually(
        async () => (await find(fact.processId))?.status === 'Exited',
        'it has ended',
      );
      const reading = read(fact);
      await reading.end();

      expect(reading.size + reading.dropped).to.equal(bytes + 3);
      expect(reading.size).to.be.at.least(KEPT_OUTPUT_BYTES);
      expect(reading.text('stdout').endsWith('end')).to.equal(true);
    });

    it('wait for a reader that requests it, and lose nothing', async () => {
      const bytes = 4 * KEPT_OUTPUT_BYTES;
      const script = `printf ready; read go; head -c ${bytes} /dev/zero; printf end`;
      const fact = await start(script, { stdin: true });
      const reading = read(fact, { pace: true });
      await reading.until('ready');
      const paused = reading.pauseAfter(1);
      await write(fact, 'go\n');
      await paused;
      const held = await find(fact.processId);
      reading.goOn();

      expect((await reading.end()).exitCode).to.equal(0);
      expect(held?.status).to.equal('Running');
      expect([reading.size, reading.dropped]).to.deep.equal([bytes + 'readyend'.length, 0]);
    });

    it('continue when the reader that they waited for disconnects', async () => {
      const script = `printf ready; read go; head -c ${8 * KEPT_OUTPUT_BYTES} /dev/zero; read rest`;
      const fact = await start(script, { stdin: true });
      const reading = read(fact, { pace: true });
      await reading.until('ready');
      const paused = reading.pauseAfter(1);
      await write(fact, 'go\n');
      await paused;
      await reading.leave();
      await write(fact, '\n');

      expect((await ended(fact)).exitCode).to.equal(0);
    });

    it('accept input, and its end', async () => {
      const fact = await start('cat; echo over', { stdin: true });
      const reading = read(fact);
      await write(fact, 'first ');
      await write(fact, 'second ');
      await reading.until('first second ');
      await under.processes.closeInput(id, fact.processId);
      await under.processes.closeInput(id, fact.processId).catch(() => undefined);

      expect((await reading.end()).exitCode).to.equal(0);
      expect(reading.text('stdout')).to.equal('first second over\n');
    });

    it('refuse input that they do not accept, before and after their end', async () => {
      const without = await start('exec sleep 1000');
      const over = await start('exit 0', { stdin: true });
      await ended(over);

      expect(await rejection(write(without, 'x'))).to.be.instanceOf(InputClosed);
      expect(await rejection(write(over, 'x'))).to.be.instanceOf(InputClosed);
      expect(await rejection(under.processes.closeInput(id, without.processId))).to.be.instanceOf(
        InputClosed,
      );
    });

    it('buffer input while they do not read, and receive it completely', async () => {
      const script = 'trap : USR1; echo ready; sleep 1000 & wait; wc -c';
      const fact = await start(script, { stdin: true });
      const reading = read(fact);
      await reading.until('ready\n');
      const piece = Buffer.alloc(64 << 10, 'x');
      const controllers = Array.from({ length: 40 }, () => new AbortController());
      const writes = controllers.map((controller) =>
        under.processes.write(id, fact.processId, { bytes: piece, signal: controller.signal }),
      );
      const outcomes = Promise.allSettled(writes);
      await writes[0];
      for (const controller of controllers) controller.abort(new Error('enough'));
      const taken = (await outcomes).filter(({ status }) => status === 'fulfilled').length;
      await signal(fact, 'USR1');
      await under.processes.closeInput(id, fact.processId);
      await reading.end();

      expect(taken).to.be.within(1, 39);
      expect(Number(reading.text('stdout').split('\n')[1])).to.equal(taken * piece.length);
    });

    it('receive signals by name, and refuse them once they have ended', async () => {
      const fact = await start('trap "echo caught" USR1; echo ready; while :; do sleep 0.05; done');
      const reading = read(fact);
      await reading.until('ready\n');
      await signal(fact, 'USR1');
      await reading.until('caught\n');
      await signal(fact, 'KILL');

      expect(await reading.end()).to.include({ exitCode: 137, signal: 'KILL' });
      expect(await rejection(under.processes.signal(id, fact.processId, 'TERM'))).to.be.instanceOf(
        ProcessEnded,
      );
    });

    it('have a terminal of the requested size, which can change', async function () {
      if (under.withoutTerminal !== undefined) skipBecause(this, under.withoutTerminal);
      const fact = await start('stty size; read line; stty size', {
        tty: { cols: 91, rows: 31 },
      });
      const reading = read(fact);
      await reading.until('31 91\r\n');
      await again(() => under.processes.resize(id, fact.processId, { cols: 70, rows: 20 }));
      await write(fact, '\n');

      expect((await reading.end()).exitCode).to.equal(0);
      expect(reading.text('stdout')).to.contain('20 70');
      const other = await start('exec sleep 1000');
      expect(
        await rejection(under.processes.resize(id, other.processId, { cols: 10, rows: 10 })),
      ).to.be.instanceOf(ProcessRefused);
    });

    it('end at their timeout, and report it', async () => {
      let printed = '';
      // It need not have begun by then.
      for (const timeoutMs of [500, 4_000, 30_000]) {
        const reading = read(await start('echo begun; sleep 1000', { timeoutMs }));
        expect((await reading.end()).exitCode).to.equal(124);
        printed = reading.text('stdout');
        if (printed !== '') break;
      }
      expect(printed).to.equal('begun\n');
    });

    it('are read from their first byte if start and read are one step', async () => {
      const order = {
        processId: v7(),
        tenant: 'team/user',
        argv: ['/bin/sh', '-c', 'echo out; exec sleep 1000'],
        stdin: false,
      };
      const { fact, output } = await under.processes.run(id, order, { pace: true });
      const reading = new OutputReading(output);
      readings.push(reading);

      await reading.until('out\n');
      expect(await find(order.processId)).to.deep.equal(fact);
      const unread = { ...order, processId: v7() };
      (await under.processes.run(id, unread, { pace: false })).leave();
      expect(await list()).to.have.length(2);
      const nowhere = { ...order, processId: v7(), cwd: '/no/such' };
      const refused = await rejection(under.processes.run(id, nowhere, { pace: false }));
      expect(refused).to.be.instanceOf(ProcessRefused).and.include({ field: 'cwd' });
    });

    it('report that a command cannot be run', async () => {
      const missing = await start('', { argv: ['/no/such'] });
      const fact = await ended(missing);

      expect(fact.exitCode).to.equal(127);
      const refused = await rejection(start('true', { cwd: '/no/such' }));
      expect(refused).to.be.instanceOf(ProcessRefused).and.include({ field: 'cwd' });
      expect((await list()).map(({ processId }) => processId)).to.deep.equal([missing.processId]);
    });

    it('end with their group when they are removed, and readers see the end', async () => {
      const fact = await start('sleep 1000 & echo $!; wait');
      const reading = read(fact);
      await reading.until('\n');
      const child = reading.text('stdout').trim();
      await removed(fact.processId);

      expect((await reading.end()).signal).to.equal('KILL');
      expect(await find(fact.processId)).to.equal(undefined);
      // One that was killed has its number until it is waited for.
      const gone = `while kill -0 ${child} 2>/dev/null; do :; done`;
      expect((await ended(await start(gone, { timeoutMs: NEVER_COMES_MS }))).exitCode).to.equal(0);
    });

    it('answer readers and signals while they are being removed', async () => {
      for (let round = 0; round < 5; round += 1) {
        const fact = await start('exec sleep 1000');
        const outcomes = await Promise.allSettled([
          under.processes.remove(id, fact.processId),
          read(fact).end(),
          under.processes.signal(id, fact.processId, 'TERM'),
        ]);
        for (const outcome of outcomes)
          if (outcome.status === 'rejected')
            expect([ProcessGone, ProcessEnded].some((kind) => outcome.reason instanceof kind))
              .to //
              .equal(true, String(outcome.reason));
      }
    });

    it('with unknown ids are gone, in every call', async () => {
      const processId = v7();
      const { processes } = under;

      expect(await processes.find(id, processId)).to.equal(undefined);
      for (const call of [
        () => processes.remove(id, processId),
        () => processes.signal(id, processId, 'TERM'),
        () => processes.resize(id, processId, { cols: 80, rows: 24 }),
        () => processes.closeInput(id, processId),
        () => processes.write(id, processId, { bytes: Buffer.from('x'), signal: NEVER }),
        () =>
          new OutputReading((signal) =>
            processes.output(id, processId, { pace: false, signal }),
          ).end(),
      ])
        expect(await rejection(call())).to.be.instanceOf(ProcessGone);
      expect(await rejection(processes.list(v7()))).to.be.instanceOf(InstanceGone);
    });

    it('are limited in number at a time', async () => {
      const facts = await Promise.all(
        Array.from({ length: LIVE_PROCESSES }, () => start('exec sleep 1000')),
      );

      const refused = await rejection(start('true'));

      expect(refused).to.be.instanceOf(ProcessesFull).and.include({ of: 'sandbox' });
      await removed(facts[0]?.processId ?? '');
      expect((await ended(await start('true'))).exitCode).to.equal(0);
    });

    it('are remembered after their end, up to a limit', async () => {
      const oldest = await start('true');
      await ended(oldest);
      let left = ENDED_PROCESSES;
      const runThem = async (): Promise<void> => {
        for (; left > 0;) {
          left -= 1;
          await ended(await start('true'));
        }
      };
      await Promise.all(Array.from({ length: 4 }, runThem));

      const known = (await list()).filter(({ status }) => status === 'Exited');

      expect(known).to.have.length(ENDED_PROCESSES);
      expect(known.map(({ processId }) => processId)).to.not.include(oldest.processId);
    });
  });
};
