export { eventually, NEVER_COMES_MS, waitedFor } from '../../../local-cluster/eventually.ts';
