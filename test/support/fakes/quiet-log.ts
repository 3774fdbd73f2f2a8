export { silentLog as quietLog } from '../../../src/contracts/log.ts';
