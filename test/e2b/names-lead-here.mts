import dns from 'node:dns';

/** Has every name lead to this machine: to be imported before whatever looks names up. */
const lookup = (_name: string, options: { all?: boolean }, done: (...of: unknown[]) => void) =>
  options.all ? done(null, [{ address: '127.0.0.1', family: 4 }]) : done(null, '127.0.0.1', 4);
Object.assign(dns, { lookup });
