import { expect } from 'chai';
import { once } from 'node:events';
import { createServer, type Server, type Socket } from 'node:net';
import { PortUnreachable } from '../../../src/contracts/sandbox-driver.ts';
import { openWay } from '../../../src/embedded/spawner/ports/port-dialling.ts';
import type { PortSocket } from '../../../src/embedded/spawner/ports/port-socket.ts';
import { freePorts } from '../../../local-cluster/control-plane/free-ports.ts';
import { aForwarder } from '../../support/fakes/a-forwarder.ts';
import { rejection } from '../../support/harness/rejection.ts';

const never = new AbortController().signal;

describe('a connection through a forwarder', () => {
  let forwarder: Awaited<ReturnType<typeof aForwarder>>;
  let server: Server;
  let port: number;
  let serve: (socket: Socket) => void;
  const opened: PortSocket[] = [];

  const chosen = async (to = port, signal = never): Promise<PortSocket> => {
    const socket = await openWay(forwarder.socket, never, (why) => new PortUnreachable(why));
    if (!socket) throw new Error('no forwarder listens');
    opened.push(socket);
    socket.choose(to, signal);
    return socket;
  };

  beforeEach(async () => {
    forwarder = await aForwarder();
    [port = 0] = await freePorts(1);
    server = createServer((socket) => serve(socket.on('error', () => {}))).listen(
      port,
      '127.0.0.1',
    );
    await once(server, 'listening');
  });

  afterEach(async () => {
    for (const socket of opened.splice(0)) socket.destroy();
    server.close();
    await forwarder.stop();
  });

  it('sends data that was written before the port accepted', async () => {
    serve = (socket) => void socket.pipe(socket);
    const socket = await chosen();
    socket.end('at once');
    expect(await text(socket)).to.equal('at once');
    await socket.taken;
  });

  it('fails for readers and waiters if nothing listens on the port', async () => {
    serve = () => {};
    server.close();
    const socket = await chosen();
    const failed = once(socket, 'error') as Promise<unknown[]>;
    expect(await rejection(socket.taken))
      .to.be.instanceOf(PortUnreachable)
      .with.property('message')
      .that.contains(`port ${port}: nothing listens`);
    expect((await failed)[0]).to.be.instanceOf(PortUnreachable);
  });

  it('fails with the reason of the first signal, and ignores later ones', async () => {
    serve = (socket) => void socket.pipe(socket);
    expect(
      await rejection((await chosen(port, AbortSignal.abort(new Error('too late')))).taken),
    ).to.have.property('message', 'too late');
    const abort = new AbortController();
    const socket = await chosen(port, abort.signal);
    await socket.taken;
    abort.abort(new Error('no more'));
    socket.end('still here');
    expect(await text(socket)).to.equal('still here');
  });

  it('is not possible without a forwarder', async () => {
    expect(
      await openWay(`${forwarder.socket}-not`, never, (why) => new PortUnreachable(why)),
    ).to.equal(undefined);
  });

  it('diverts all data in order, one piece at a time', async () => {
    const body = Buffer.from(Uint32Array.from({ length: 1 << 20 }, (_, at) => at).buffer);
    serve = (socket) => void socket.end(body);
    const socket = await chosen();
    const got: Buffer[] = [];
    let size = 0;
    let held = false;
    const whole = new Promise<void>((resolve) => {
      socket.divert((bytes, done) => {
        expect(held).to.equal(false);
        held = true;
        setImmediate(() => {
          // Its memory is used again only now.
          got.push(Buffer.from(bytes));
          size += bytes.length;
          held = false;
          if (size >= body.length) resolve();
          done();
        });
        return true;
      });
    });
    socket.on('data', (bytes: Buffer) => {
      got.push(bytes);
      size += bytes.length;
    });
    await whole;
    expect(Buffer.concat(got).equals(body)).to.equal(true);
  });

  it('passes on data that the receiver does not accept', async () => {
    serve = (socket) => void socket.end(Buffer.alloc(1 << 20, 'x'));
    const socket = await chosen();
    socket.divert(() => false);
    expect((await text(socket)).length).to.equal(1 << 20);
  });
});

const text = async (socket: Socket): Promise<string> => {
  const chunks: Buffer[] = [];
  for await (const chunk of socket) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks).toString();
};
