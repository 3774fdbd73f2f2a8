import { expect } from 'chai';
import { inputNotTaken, processNotFound, sandboxNotFound } from '../../src/model/refusals.ts';
import { rulesOf } from './an-approving-server.ts';
import { eventually } from '../support/harness/eventually.ts';
import { ProcessSocket } from '../support/harness/process-socket.ts';
import { FACT, FakeProcess } from './process-socket-support.ts';
import { aTerminalDaemon, SANDBOX, type TerminalDaemon } from './terminal-support.ts';

const PATH = `/v1/sandboxes/${SANDBOX}/processes/p1/output`;

describe('the WebSocket of a process', () => {
  let daemon: TerminalDaemon;
  let wire: FakeProcess;
  const open = (path = PATH, key = 'good'): ProcessSocket =>
    new ProcessSocket(daemon.port, path, key);
  beforeEach(async () => {
    wire = new FakeProcess();
    daemon = await aTerminalDaemon({ processes: wire.upgrades() });
  });
  afterEach(() => daemon.close());

  it('sends both outputs with their positions, and the end', async () => {
    const socket = open(`${PATH}?from=7&pace=true`);
    wire.print('stdout', Buffer.alloc(64 << 10, 'o'), '10');
    wire.print('stderr', Buffer.from('of it'), '11');
    wire.tell({ kind: 'dropped', bytes: 5, next: '12' });
    wire.tell({ kind: 'end', fact: { ...FACT, status: 'Exited', exitCode: 3 }, next: '13' });

    expect(await socket.closed).to.deep.equal([1000, 'the process ended']);
    expect(socket.printed('stdout')).to.equal('o'.repeat(64 << 10));
    expect(socket.printed('stderr')).to.equal('of it');
    expect(socket.printed('message')).to.equal('{"type":"dropped","bytes":5}');
    expect(socket.texts).to.deep.equal(['{"type":"exit","exitCode":3}']);
    expect(socket.position).to.equal('12');
    expect(wire.asked).to.deep.equal([{ processId: 'p1', from: '7', pace: true }]);
    expect(wire.closes).to.equal(1);
  });

  it('reports lack of memory', async () => {
    const socket = open();
    const fact = { ...FACT, status: 'Exited', exitCode: 9, outOfMemory: true } as const;
    wire.tell({ kind: 'end', fact, next: '1' });

    await socket.closed;
    expect(socket.texts).to.deep.equal(['{"type":"exit","exitCode":9,"oomKilled":true}']);
  });

  it('passes input on in order, repeats refused input, and passes on its end', async () => {
    const socket = open();
    wire.refusing = [inputNotTaken()];
    socket.send(Buffer.from('one'));
    socket.send(Buffer.from('two'));
    socket.send('{"type":"eof"}');

    await eventually(() => {
      wire.clock.advance(500);
      return wire.input.length === 3;
    }, 'all was handed over');
    expect(wire.input).to.deep.equal(['one', 'two', 'end']);
  });

  it('signals, resizes, and reports failures', async () => {
    const socket = open();
    wire.refusing = [processNotFound()];
    socket.send('{"type":"signal","name":"INT"}');
    socket.send('{"type":"resize","cols":100,"rows":30}');
    socket.send('{"type":"nothing"}');
    socket.send('{');
    socket.send(Buffer.from('lost'));

    await socket.until(() => socket.texts.length === 2 && socket.printed('message') !== '');

    expect(wire.done).to.deep.equal(['INT', '100x30']);
    expect(JSON.parse(socket.printed('message'))).to.include({ errorCode: 'PROCESS_NOT_FOUND' });
    expect(socket.texts[0]).to.include('resize, signal or eof');
    expect(wire.input).to.deep.equal([]);
  });

  it('opens with a valid key only, and refuses like other requests', async () => {
    wire.refusal = sandboxNotFound();
    expect(await open().refused).to.equal(404);
    wire.refusal = processNotFound();
    expect(await open().refused).to.equal(404);
    expect(await open(PATH, 'bad').refused).to.equal(401);
    expect(await open(PATH, 'fast').refused).to.equal(429);
    expect(await open(`${PATH}?pace=7`).refused).to.equal(400);
    expect(await open(`${PATH}?from=1&from=2`).refused).to.equal(400);
    for (const path of [
      PATH.replace(SANDBOX, '%2e%2e'),
      PATH.replace('p1', '%zz'),
      PATH.replace('p1', 'p%00'),
      PATH.replace('p1', 'p'.repeat(5_000)),
      `${PATH}/x`,
    ])
      expect(await open(path).refused, path).to.equal(404);
    expect(wire.asked).to.have.length(2);
  });

  it('opens only if no rule gates a request that it replaces', async () => {
    const path = `path=/sandboxes/${SANDBOX}/processes/p1`;
    for (const [rule, status] of [
      ['require method=POST', 403],
      ['require operation=signalProcess', 403],
      ['deny operation=resizeProcess team=blue', 403],
      [`require ${path}/stdin key=open`, 403],
      [`deny ${path}/output`, 403],
      ['require method=POST key=gated', 101],
      ['require method=DELETE', 101],
      [`deny ${path}`, 101],
    ] as const) {
      wire.rules = rulesOf(rule);
      const socket = open();
      if (status === 403) expect(await socket.refused, rule).to.equal(403);
      else await eventually(() => socket.ws.readyState === socket.ws.OPEN, rule);
    }
    expect(wire.asked).to.have.length(3);
  });

  it('closes with its sandbox, its key, and its process', async () => {
    const codeAfter = async (cause: () => void): Promise<number | undefined> => {
      const before = wire.asked.length;
      let code: number | undefined;
      void open().closed.then(([closedBy]) => (code = closedBy));
      await eventually(() => wire.asked.length > before, 'it is open');
      cause();
      await eventually(() => {
        daemon.clock.advance(250);
        return code !== undefined;
      }, 'it is closed');
      return code;
    };

    expect(await codeAfter(() => wire.fail(sandboxNotFound()))).to.equal(4004);
    expect(await codeAfter(() => wire.fail(processNotFound()))).to.equal(1011);
    expect(await codeAfter(() => wire.revoke())).to.equal(4001);
    expect(wire.closes).to.equal(3);
  });

  it('stops reading while its reader is behind', async () => {
    const socket = open();
    await eventually(() => socket.ws.readyState === socket.ws.OPEN, 'it is open');
    socket.ws.pause();
    wire.flood();
    let before = -1;
    await eventually(() => {
      const now = wire.given;
      const isStill = now === before && now > 0;
      before = now;
      return isStill;
    }, 'it stands still');

    expect(wire.given).to.be.below(16 << 20);
    socket.ws.terminate();
    await eventually(() => wire.closes === 1, 'its reading is over');
  });
});
